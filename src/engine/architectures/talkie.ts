/**
 * Talkie: norms without weights, a factor per query head, and every layer adds the normed embedding again, times a
 * factor. Semantics: src/models/talkie.cpp of llama.cpp.
 */
import type { Step } from "../program/step.ts";
import { attention } from "./attention.ts";
import { decoder, normSteps, sequentialBlock } from "./decoder.ts";
import { buffersOf, mlp, type Model } from "./model.ts";
import { ropeOf } from "./rope.ts";

export function talkie(model: Model): Step[] {
  const { keys, dim, ffnDim, nHeads, headDim, eps } = model;
  const { x, h, y, q, k } = buffersOf(model);
  const rope = ropeOf(model, { style: "neox" });
  const begin = { name: "talkie.begin", dim };
  const feedForward = (layer: number): Step => {
    const { gate, up } = mlp(model, layer);
    const down = model.matrix(`blk.${layer}.ffn_down`, { inDim: ffnDim, outDim: dim });
    return { op: "gatedMlp", out: y, x: h, gate, up, down, act: "silu" };
  };
  return decoder(model, {
    norm: "bareRms",
    start: [...normSteps(model, "bareRms", { out: x, x, name: "" }), { op: "slice", out: begin, x, heads: 1, at: 0 }],
    logitScale: keys.number("logit_scale"),
    block: (layer) => {
      const blk = `blk.${layer}`;
      const factors = model.matrix(`${blk}.attn_q_norm`, { inDim: 1, outDim: nHeads });
      const [share] = model.values(`${blk}.layer_output_scale`, 1) ?? [0];
      return [
        ...sequentialBlock(model, layer, {
          norm: "bareRms",
          attention: attention(model, layer, {
            rope,
            qkNorm: null,
            queries: [
              { op: "bareRmsNorm", out: q, x: q, run: headDim, eps },
              { op: "multiplyVector", x: q, w: { ...factors, inDim: nHeads, outDim: 1, tensorRows: 1 } },
              { op: "bareRmsNorm", out: k, x: k, run: headDim, eps },
            ],
          }),
          ffn: [feedForward(layer)],
        }),
        { op: "add", out: x, a: x, b: begin, scale: share! },
      ];
    },
  });
}
