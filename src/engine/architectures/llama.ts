/**
 * Llama 1–3, Mistral, Mixtral and all others with this architecture name; dense, or a mixture of experts if the file
 * has any. Semantics: src/models/llama.cpp of llama.cpp.
 */
import type { Step } from "../program/step.ts";
import { moe } from "./decoder.ts";
import { attnOutput, buffersOf, embedding, mlp, output, qkv, type Model } from "./model.ts";
import { ropeOf } from "./rope.ts";

export function llama(model: Model): Step[] {
  const { dim, nLayers, nHeads, nKvHeads, headDim, eps, nExperts } = model;
  const { x, h, q, k, v, heads, y, last, logits } = buffersOf(model);
  const rope = ropeOf(model, { style: "norm" });
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
      ...(nExperts > 0
        ? moe(model, layer, { act: "silu", normalize: true })
        : [{ op: "gatedMlp", out: y, x: h, ...mlp(model, layer), act: "silu" } as const]),
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
