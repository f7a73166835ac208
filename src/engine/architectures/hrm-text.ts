/**
 * HRM: two stacks of layers that alternate on the sum of two streams; the low stack runs several times per run of the
 * high one. Every run has its own KV caches. Semantics: src/models/hrm-text.cpp of llama.cpp.
 */
import type { Step } from "../program/step.ts";
import { AppError } from "../../base/index.ts";
import { attention } from "./attention.ts";
import { decoder, feedForward, normSteps, sequentialBlock } from "./decoder.ts";
import { LAYERS_MAX } from "./hparams.ts";
import { buffersOf, type Model } from "./model.ts";
import { ropeOf } from "./rope.ts";

export function hrmText(model: Model): Step[] {
  const { keys, dim, nLayers, path } = model;
  const { x } = buffersOf(model);
  const rope = ropeOf(model, { style: "neox" });
  const count = (key: string): number => keys.count(`hrm.${key}`, { min: 1, max: LAYERS_MAX });
  const [perStack, highCycles, lowCycles] = [count("layers_per_stack"), count("h_cycles"), count("l_cycles")];
  if (perStack * highCycles * (lowCycles + 1) !== nLayers) {
    const expected = `stacks of ${perStack} layers, ${highCycles} × (${lowCycles} + 1) of them`;
    throw new AppError("bad_file", `${path}: '${keys.arch}.block_count': expected ${expected}, got ${nLayers}`);
  }
  const [high, low] = [
    { name: "hrm.high", dim },
    { name: "hrm.low", dim },
  ];
  const begin = model.plain("hrm.z_l_init", { inDim: dim, outDim: 1 });
  const nRuns = highCycles * (lowCycles + 1);
  const stack = (run: number): Step[] => {
    const isHigh = run % (lowCycles + 1) === lowCycles;
    const layers = Array.from({ length: perStack }, (_, i): Step[] => {
      const layer = (isHigh ? perStack : 0) + i;
      return sequentialBlock(model, layer, {
        norm: "bareRms",
        attention: attention(model, layer, { rope, gate: "sigmoid", cache: run * perStack + i }),
        ffn: feedForward(model, layer, { act: "silu" }),
      });
    });
    const sum: Step[] =
      run === 0
        ? [
            { op: "slice", out: high, x, heads: 1, at: 0 },
            { op: "addVector", x, w: begin },
          ]
        : [{ op: "add", out: x, a: high, b: low, scale: 1 }];
    const isLast = run === nRuns - 1; // its norm is the decoder's final norm
    const out = isHigh ? high : low;
    return [...sum, ...layers.flat(), ...(isLast ? [] : normSteps(model, "bareRms", { out, x, name: "" }))];
  };
  return decoder(model, {
    embeddingScale: keys.number("embedding_scale", 0) || 1,
    norm: "bareRms",
    block: (layer) => (layer % perStack === 0 ? stack(layer / perStack) : []),
  });
}
