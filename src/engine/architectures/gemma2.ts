/**
 * Gemma 2: every other layer has a sliding window, scores and logits are soft-capped, and each block's output is normed
 * before it is added. Semantics: src/models/gemma2.cpp of llama.cpp.
 */
import type { Step } from "../program/step.ts";
import { readWindows } from "./hparams.ts";
import { attnOutput, buffersOf, embedding, mlp, output, qkv, type Model } from "./model.ts";
import { ropeOf } from "./rope.ts";

/** The 27B model scales attention by width / heads instead of by the head size. */
const LAYERS_27B = 46;

export function gemma2(model: Model): Step[] {
  const { dim, nLayers, nHeads, nKvHeads, headDim, eps, keys } = model;
  const { x, h, q, k, v, heads, y, last, logits } = buffersOf(model);
  const rope = ropeOf(model, { style: "neox" });
  const windows = readWindows(keys, model, { window: 4096, period: 2 });
  const softCap = keys.number("attn_logit_softcapping", 50);
  const scale = keys.number("attention.scale", 0) || 1 / Math.sqrt(nLayers === LAYERS_27B ? dim / nHeads : headDim);
  const steps: Step[] = [{ op: "embed", out: x, table: embedding(model), scale: Math.sqrt(dim) }];
  for (let layer = 0; layer < nLayers; layer++) {
    const blk = `blk.${layer}`;
    const w = qkv(model, layer);
    const window = windows[layer]!;
    steps.push(
      { op: "rmsNorm", out: h, x, w: model.vector(`${blk}.attn_norm`, dim), eps },
      { op: "linear", out: q, x: h, ...w.q },
      { op: "linear", out: k, x: h, ...w.k },
      { op: "linear", out: v, x: h, ...w.v },
      { op: "rope", x: q, heads: nHeads, headDim, rope },
      { op: "rope", x: k, heads: nKvHeads, headDim, rope },
      { op: "attention", out: heads, q, k, v, layer, nHeads, nKvHeads, headDim, scale, window, softCap, rope },
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
  const cap = keys.number("final_logit_softcapping", 30);
  if (cap > 0) steps.push({ op: "softCap", x: logits, cap });
  return steps;
}
