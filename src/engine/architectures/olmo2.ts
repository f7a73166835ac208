/**
 * OLMo 2 and 3: norms after each block instead of before it, and norms over the whole of query and key. OLMo 3 adds
 * layers with a sliding window, which have unscaled RoPE. Semantics: src/models/olmo2.cpp of llama.cpp.
 */
import type { Step } from "../program/step.ts";
import { readWindows } from "./hparams.ts";
import { attnOutput, buffersOf, embedding, mlp, output, qkv, type Model } from "./model.ts";
import { localRope, ropeOf } from "./rope.ts";

export function olmo2(model: Model): Step[] {
  const { dim, nLayers, nHeads, nKvHeads, headDim, eps, keys } = model;
  const { x, q, k, v, heads, y, last, logits } = buffersOf(model);
  const scaled = ropeOf(model, { style: "neox" });
  const local = localRope(model, scaled, { base: keys.number("rope.freq_base_swa", scaled.base) });
  const windows = readWindows(keys, model, { window: 0, period: 4 });
  const scale = 1 / Math.sqrt(headDim);
  const steps: Step[] = [{ op: "embed", out: x, table: embedding(model), scale: 1 }];
  for (let layer = 0; layer < nLayers; layer++) {
    const blk = `blk.${layer}`;
    const w = qkv(model, layer);
    const window = windows[layer]!;
    const rope = window > 0 ? local : scaled;
    steps.push(
      { op: "linear", out: q, x, ...w.q },
      { op: "linear", out: k, x, ...w.k },
      { op: "linear", out: v, x, ...w.v },
      { op: "rmsNorm", out: q, x: q, w: model.vector(`${blk}.attn_q_norm`, q.dim), eps },
      { op: "rmsNorm", out: k, x: k, w: model.vector(`${blk}.attn_k_norm`, k.dim), eps },
      { op: "rope", x: q, heads: nHeads, headDim, rope },
      { op: "rope", x: k, heads: nKvHeads, headDim, rope },
      { op: "attention", out: heads, q, k, v, layer, nHeads, nKvHeads, headDim, scale, window, softCap: 0, rope },
      { op: "linear", out: y, x: heads, ...attnOutput(model, layer) },
      { op: "rmsNorm", out: y, x: y, w: model.vector(`${blk}.post_attention_norm`, dim), eps },
      { op: "add", out: x, a: x, b: y, scale: 1 },
      { op: "gatedMlp", out: y, x, ...mlp(model, layer), act: "silu" },
      { op: "rmsNorm", out: y, x: y, w: model.vector(`${blk}.post_ffw_norm`, dim), eps },
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
