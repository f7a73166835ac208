/**
 * LFM 2, dense or with experts: layers without key heads are short convolutions, gated before and after. Semantics:
 * src/models/lfm2.cpp and lfm2moe.cpp of llama.cpp.
 */
import type { Step } from "../program/step.ts";
import { CONV_KERNEL_MAX, expertFfnDim, readLayers } from "./hparams.ts";
import { attnOutput, buffersOf, embedding, experts, mlp, output, qkv, type Model } from "./model.ts";
import { ropeOf } from "./rope.ts";
import { routingOf } from "./experts.ts";

export function lfm2(model: Model): Step[] {
  const { dim, nLayers, eps, keys, nExperts } = model;
  const { x, h, y, last, logits } = buffersOf(model);
  const { kvHeads } = readLayers(keys, model);
  const attend = attention(model);
  const dense = nExperts > 0 ? keys.count("leading_dense_block_count", { min: 0, max: nLayers, fallback: 0 }) : nLayers;
  const steps: Step[] = [{ op: "embed", out: x, table: embedding(model), scale: 1 }];
  for (let layer = 0; layer < nLayers; layer++) {
    const blk = `blk.${layer}`;
    const nKvHeads = kvHeads[layer]!;
    steps.push(
      { op: "rmsNorm", out: h, x, w: model.vector(`${blk}.attn_norm`, dim), eps },
      ...(nKvHeads === 0 ? convolution(model, layer) : attend(layer, nKvHeads)),
      { op: "add", out: x, a: x, b: y, scale: 1 },
      { op: "rmsNorm", out: h, x, w: model.vector(`${blk}.ffn_norm`, dim), eps },
      layer < dense ? { op: "gatedMlp", out: y, x: h, ...mlp(model, layer), act: "silu" } : mixture(model, layer),
      { op: "add", out: x, a: x, b: y, scale: 1 },
    );
  }
  return [
    ...steps,
    { op: "takeRows", out: last, x },
    { op: "rmsNorm", out: last, x: last, w: model.vector("token_embd_norm", dim), eps },
    { op: "linear", out: logits, x: last, ...output(model) },
  ];
}

function mixture(model: Model, layer: number): Step {
  const { h, y } = buffersOf(model);
  const ffnDim = expertFfnDim(model.keys, model);
  const routing = routingOf(model);
  const selectB = model.bias(`blk.${layer}.exp_probs_b`, model.nExperts);
  const chosen = { ...(routing && { routing }), ...(selectB && { selectB }) };
  return { op: "moe", out: y, x: h, ...experts(model, layer, { ffnDim }), ...chosen, act: "silu", normalize: true };
}

function attention(model: Model): (layer: number, nKvHeads: number) => Step[] {
  const { nHeads, headDim, eps, keys } = model;
  const { h, q, heads, y } = buffersOf(model);
  const rope = ropeOf(model, { style: "neox" });
  const window = keys.count("attention.sliding_window", { min: 0, max: 2 ** 24, fallback: 0 });
  keys.find("attention.sliding_window_pattern"); // marks the key as read: all attention layers have the window
  const scale = 1 / Math.sqrt(headDim);
  return (layer, nKvHeads) => {
    const blk = `blk.${layer}`;
    const w = qkv(model, layer, { nKvHeads });
    const [k, v] = [
      { name: "k", dim: nKvHeads * headDim },
      { name: "v", dim: nKvHeads * headDim },
    ];
    return [
      { op: "linear", out: q, x: h, ...w.q },
      { op: "linear", out: k, x: h, ...w.k },
      { op: "linear", out: v, x: h, ...w.v },
      { op: "rmsNorm", out: q, x: q, w: model.vector(`${blk}.attn_q_norm`, headDim), eps },
      { op: "rmsNorm", out: k, x: k, w: model.vector(`${blk}.attn_k_norm`, headDim), eps },
      { op: "rope", x: q, heads: nHeads, headDim, rope },
      { op: "rope", x: k, heads: nKvHeads, headDim, rope },
      { op: "attention", out: heads, q, k, v, layer, nHeads, nKvHeads, headDim, scale, window, softCap: 0, rope },
      { op: "linear", out: y, x: heads, ...attnOutput(model, layer) },
    ];
  };
}

/** y = out_proj · (c ⊙ conv(b ⊙ x)), where b, c and x are thirds of in_proj · h. */
function convolution(model: Model, layer: number): Step[] {
  const { dim, keys } = model;
  const { h, y } = buffersOf(model);
  const blk = `blk.${layer}.shortconv`;
  const taps = keys.count("shortconv.l_cache", { min: 2, max: CONV_KERNEL_MAX });
  const all = { name: "conv.all", dim: 3 * dim };
  const [b, c, x, mixed] = [
    { name: "conv.b", dim },
    { name: "conv.c", dim },
    { name: "conv.x", dim },
    { name: "conv.mixed", dim },
  ];
  return [
    { op: "linear", out: all, x: h, w: model.matrix(`${blk}.in_proj`, { inDim: dim, outDim: all.dim }) },
    { op: "slice", out: b, x: all, heads: 1, at: 0 },
    { op: "slice", out: c, x: all, heads: 1, at: dim },
    { op: "slice", out: x, x: all, heads: 1, at: 2 * dim },
    { op: "multiply", out: x, a: x, b },
    { op: "causalConv", out: mixed, x, w: model.matrix(`${blk}.conv`, { inDim: taps, outDim: dim }), layer },
    { op: "multiply", out: mixed, a: mixed, b: c },
    { op: "linear", out: y, x: mixed, w: model.matrix(`${blk}.out_proj`, { inDim: dim, outDim: dim }) },
  ];
}
