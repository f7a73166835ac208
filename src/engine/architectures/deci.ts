/**
 * Models with layers of different shapes: OpenELM, and DeciLM with Llama Nemotron, where a layer may have only a matrix
 * in place of attention, or no attention. Semantics: src/models/openelm.cpp and deci.cpp of llama.cpp.
 */
import type { Step } from "../program/step.ts";
import { attention } from "./attention.ts";
import { decoder, feedForward, normSteps } from "./decoder.ts";
import { readLayers } from "./hparams.ts";
import { buffersOf, type Model } from "./model.ts";
import { ropeOf } from "./rope.ts";
import { sequential } from "./sequential.ts";

export function openelm(model: Model): Step[] {
  const { heads, kvHeads, ffnDims } = readLayers(model.keys, model);
  return sequential(model, {
    rope: "neox",
    bareQkv: true,
    perLayer: (layer) => ({ sizes: { nHeads: heads[layer]!, nKvHeads: kvHeads[layer]! } }),
    ffn: (layer) => feedForward(model, layer, { act: "silu", ffnDim: ffnDims[layer]! }),
  });
}

export function deci(model: Model): Step[] {
  const { keys, dim } = model;
  const { x, h, y } = buffersOf(model);
  const rope = ropeOf(model, { style: "norm" });
  const scale = keys.number("attention.scale", 0);
  const { heads, kvHeads, ffnDims } = readLayers(keys, model);
  const attend = (layer: number): Step[] => {
    const [nHeads, nKvHeads] = [heads[layer]!, kvHeads[layer]!];
    if (nKvHeads > 0)
      return attention(model, layer, {
        rope,
        sizes: { nHeads, nKvHeads },
        ...(scale !== 0 && { scale }),
      });
    return [{ op: "linear", out: y, x: h, w: model.matrix(`blk.${layer}.attn_output`, { inDim: dim, outDim: dim }) }];
  };
  const join: Step = { op: "add", out: x, a: x, b: y, scale: 1 };
  return decoder(model, {
    block: (layer) => {
      const ffnDim = ffnDims[layer]!;
      if (ffnDim === 0) return []; // llama.cpp omits the attention of such a layer, too
      const blk = `blk.${layer}`;
      return [
        ...(heads[layer] === 0
          ? []
          : [...normSteps(model, "rms", { out: h, x, name: `${blk}.attn_norm` }), ...attend(layer), join]),
        ...normSteps(model, "rms", { out: h, x, name: `${blk}.ffn_norm` }),
        ...feedForward(model, layer, { act: "silu", ffnDim }),
        join,
      ];
    },
  });
}
