/**
 * LFM 2, dense or with experts: layers without key heads are short convolutions, gated before and after. Semantics:
 * src/models/lfm2.cpp and lfm2moe.cpp of llama.cpp.
 */
import type { Step } from "../program/step.ts";
import { attention } from "./attention.ts";
import { decoder, feedForward, moe, sequentialBlock } from "./decoder.ts";
import { routingOf } from "./experts.ts";
import { CONV_KERNEL_MAX, readLayers } from "./hparams.ts";
import { buffersOf, type Model } from "./model.ts";
import { ropeOf } from "./rope.ts";

export function lfm2(model: Model): Step[] {
  const { nLayers, nHeads, keys, nExperts } = model;
  const { kvHeads } = readLayers(keys, model);
  const rope = ropeOf(model, { style: "neox" });
  const window = keys.count("attention.sliding_window", { min: 0, max: 2 ** 24, fallback: 0 });
  keys.find("attention.sliding_window_pattern"); // marks the key as read: all attention layers have the window
  const dense = nExperts > 0 ? keys.count("leading_dense_block_count", { min: 0, max: nLayers, fallback: 0 }) : nLayers;
  const routing = routingOf(model);
  return decoder(model, {
    outputNorm: "token_embd_norm",
    block: (layer) => {
      const nKvHeads = kvHeads[layer]!;
      return sequentialBlock(model, layer, {
        attention:
          nKvHeads === 0
            ? convolution(model, layer)
            : attention(model, layer, { rope, window, sizes: { nHeads, nKvHeads } }),
        ffn:
          layer < dense
            ? feedForward(model, layer, { act: "silu" })
            : moe(model, layer, { act: "silu", normalize: true, routing }),
      });
    },
  });
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
