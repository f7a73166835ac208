/**
 * Phi 3 and 4: query, key and value fused in one matrix, gate and up in another, RoPE with a short and a long set of
 * frequency factors. The files' sliding window is ignored, as in llama.cpp (its pull request 13676). Semantics:
 * src/models/phi3.cpp of llama.cpp.
 */
import type { Step } from "../program/step.ts";
import { attnOutput, buffersOf, embedding, fusedMlp, output, qkv, type Model } from "./model.ts";
import { ropeOf } from "./rope.ts";

export function phi3(model: Model): Step[] {
  const { dim, nLayers, nHeads, nKvHeads, headDim, eps } = model;
  const { x, h, q, k, v, heads, y, last, logits } = buffersOf(model);
  const rope = ropeOf(model, { style: "neox" });
  const scale = 1 / Math.sqrt(headDim);
  const steps: Step[] = [{ op: "embed", out: x, table: embedding(model), scale: 1 }];
  for (let layer = 0; layer < nLayers; layer++) {
    const blk = `blk.${layer}`;
    const w = qkv(model, layer);
    steps.push(
      { op: "rmsNorm", out: h, x, w: model.vector(`${blk}.attn_norm`, dim), eps },
      { op: "linear", out: q, x: h, ...w.q },
      { op: "linear", out: k, x: h, ...w.k },
      { op: "linear", out: v, x: h, ...w.v },
      { op: "rope", x: q, heads: nHeads, headDim, rope },
      { op: "rope", x: k, heads: nKvHeads, headDim, rope },
      { op: "attention", out: heads, q, k, v, layer, nHeads, nKvHeads, headDim, scale, window: 0, softCap: 0, rope },
      { op: "linear", out: y, x: heads, ...attnOutput(model, layer) },
      { op: "add", out: x, a: x, b: y, scale: 1 },
      { op: "rmsNorm", out: h, x, w: model.vector(`${blk}.ffn_norm`, dim), eps },
      { op: "gatedMlp", out: y, x: h, ...fusedMlp(model, layer), act: "silu" },
      { op: "add", out: x, a: x, b: y, scale: 1 },
    );
  }
  steps.push(
    { op: "takeRows", out: last, x },
    { op: "rmsNorm", out: last, x: last, w: model.vector("output_norm", dim), eps },
    { op: "linear", out: logits, x: last, ...output(model) },
  );
  return steps;
}
