/**
 * GroveMoE: the outputs of the chosen experts also pass smaller experts, each shared by several neighbours. Semantics:
 * src/models/grovemoe.cpp of llama.cpp.
 */
import type { Step, Weight } from "../program/step.ts";
import { AppError } from "../../base/index.ts";
import { moe } from "./decoder.ts";
import { buffersOf, type Model } from "./model.ts";
import { sequential } from "./sequential.ts";

export function grovemoe(model: Model): Step[] {
  const { keys, nExperts } = model;
  const perExpert = keys.count("experts_per_group", { min: 1, max: Math.max(1, nExperts) });
  if (nExperts === 0 || nExperts % perExpert !== 0) {
    const expected = `a multiple of ${perExpert}`;
    throw new AppError("bad_file", `${model.path}: '${keys.arch}.expert_count': expected ${expected}, got ${nExperts}`);
  }
  return sequential(model, {
    rope: "neox",
    ffn: (layer) => [...moe(model, layer, { act: "silu", normalize: true }), ...smallExperts(model, layer, perExpert)],
  });
}

/** Small experts on `y`, chosen by `h`, added to `y`. */
function smallExperts(model: Model, layer: number, perExpert: number): Step[] {
  const { keys, dim, nExperts, nExpertsUsed } = model;
  const { h, y } = buffersOf(model);
  const blk = `blk.${layer}`;
  const experts = nExperts / perExpert;
  const ffnDim = model.shape(`${blk}.ffn_down_chexps`)?.[0] ?? 0;
  const stack = (part: string, inDim: number, outDim: number): Weight =>
    model.matrix(`${blk}.ffn_${part}_chexps`, { inDim, outDim, experts });
  const out = { name: "small", dim };
  return [
    {
      op: "moe",
      out,
      x: y,
      routed: h,
      router: model.matrix(`${blk}.ffn_gate_inp`, { inDim: dim, outDim: nExperts }),
      gate: stack("gate", dim, ffnDim),
      up: stack("up", dim, ffnDim),
      down: stack("down", ffnDim, dim),
      act: "silu",
      nUsed: Math.min(nExpertsUsed, experts),
      normalize: true,
      scale: keys.number("expert_weights_scale", 0) || 1,
      routing: { score: "softmax", perExpert },
    },
    { op: "add", out: y, a: y, b: out, scale: keys.number("expert_group_scale") },
  ];
}
