/**
 * BitNet b1.58: Llama with a norm before the output projection of attention, and one inside the MLP. Semantics:
 * src/models/bitnet.cpp of llama.cpp.
 */
import type { Step, Weight } from "../program/step.ts";
import { buffersOf, type Model } from "./model.ts";
import { ropeOf } from "./rope.ts";
import { sequential } from "./sequential.ts";

export const bitnet = (model: Model): Step[] =>
  sequential(model, {
    rope: ropeOf(model, { style: "neox", factors: false }),
    resultNorm: "attn_sub_norm",
    ffn: (layer) => feedForward(model, layer),
  });

/** y = down · norm(silu(gate · h) ⊙ (up · h)) */
function feedForward(model: Model, layer: number): Step[] {
  const { dim, ffnDim, eps } = model;
  const { h, y } = buffersOf(model);
  const [gated, raised] = [
    { name: "mlp.gate", dim: ffnDim },
    { name: "mlp.up", dim: ffnDim },
  ];
  const matrix = (name: string, inDim: number, outDim: number): Weight =>
    model.matrix(`blk.${layer}.ffn_${name}`, { inDim, outDim });
  const norm = model.vector(`blk.${layer}.ffn_sub_norm`, ffnDim);
  return [
    { op: "linear", out: gated, x: h, w: matrix("gate", dim, ffnDim) },
    { op: "linear", out: raised, x: h, w: matrix("up", dim, ffnDim) },
    { op: "multiply", out: raised, a: raised, b: gated, act: "silu" },
    { op: "rmsNorm", out: raised, x: raised, w: norm, eps },
    { op: "linear", out: y, x: raised, w: matrix("down", ffnDim, dim) },
  ];
}
