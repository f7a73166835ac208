/**
 * Gemma 3: five layers with a sliding window and their own RoPE base per global layer, and QK-norm. Semantics:
 * src/models/gemma3.cpp of llama.cpp; `rope.global.freq_base` and `rope.local.freq_base` are another converter's
 * spelling.
 */
import type { Step } from "../program/step.ts";
import { readWindows } from "./hparams.ts";
import { attnOutput, buffersOf, embedding, mlp, output, qkv, type Model } from "./model.ts";
import { checkedRope, localRope, ropeOf } from "./rope.ts";

/** The 27B model scales attention by width / heads instead of by the head size. */
const LAYERS_27B = 62;

export function gemma3(model: Model): Step[] {
  const { dim, nLayers, nHeads, nKvHeads, headDim, eps, keys } = model;
  const { x, h, q, k, v, heads, y, last, logits } = buffersOf(model);
  const scaled = ropeOf(model, { style: "neox" });
  const globalBase = keys.number("rope.freq_base", keys.number("rope.global.freq_base", 10_000));
  const globalRope = checkedRope(model, { ...scaled, base: globalBase });
  const base = keys.number("rope.freq_base_swa", keys.number("rope.local.freq_base", 10_000));
  const local = localRope(model, scaled, { base });
  const windows = readWindows(keys, model, { window: 0, period: 6 });
  const scale = keys.number("attention.scale", 0) || 1 / Math.sqrt(nLayers === LAYERS_27B ? dim / nHeads : headDim);
  const steps: Step[] = [{ op: "embed", out: x, table: embedding(model), scale: Math.sqrt(dim) }];
  for (let layer = 0; layer < nLayers; layer++) {
    const blk = `blk.${layer}`;
    const w = qkv(model, layer);
    const window = windows[layer]!;
    const rope = window > 0 ? local : globalRope;
    steps.push(
      { op: "rmsNorm", out: h, x, w: model.vector(`${blk}.attn_norm`, dim), eps },
      { op: "linear", out: q, x: h, ...w.q },
      { op: "linear", out: k, x: h, ...w.k },
      { op: "linear", out: v, x: h, ...w.v },
      { op: "rmsNorm", out: q, x: q, w: model.vector(`${blk}.attn_q_norm`, headDim), eps },
      { op: "rmsNorm", out: k, x: k, w: model.vector(`${blk}.attn_k_norm`, headDim), eps },
      { op: "rope", x: q, heads: nHeads, headDim, rope },
      { op: "rope", x: k, heads: nKvHeads, headDim, rope },
      { op: "attention", out: heads, q, k, v, layer, nHeads, nKvHeads, headDim, scale, window, softCap: 0, rope },
      { op: "linear", out: y, x: heads, ...attnOutput(model, layer) },
      { op: "rmsNorm", out: y, x: y, w: model.vector(`${blk}.post_attention_norm`, dim), eps },
      { op: "add", out: x, a: x, b: y, scale: 1 },
      { op: "rmsNorm", out: h, x, w: model.vector(`${blk}.ffn_norm`, dim), eps },
      { op: "gatedMlp", out: y, x: h, ...mlp(model, layer), act: "gelu" },
      { op: "rmsNorm", out: y, x: y, w: model.vector(`${blk}.post_ffw_norm`, dim), eps },
      { op: "add", out: x, a: x, b: y, scale: 1 },
    );
  }
  steps.push(
    { op: "takeRows", out: last, x },
    { op: "rmsNorm", out: last, x: last, w: model.vector("output_norm", dim), eps },
    { op: "linear", out: logits, x: last, ...output(model) },
  );
  const cap = keys.number("final_logit_softcapping", 0);
  if (cap > 0) steps.push({ op: "softCap", x: logits, cap });
  return steps;
}
