/**
 * Gemma 1 to 3: scaled embeddings, an independent head size, a GELU gate. Norm weights are stored with 1 added.
 * Semantics: src/models/gemma.cpp, gemma2.cpp and gemma3.cpp of llama.cpp.
 */
import type { RopeScaling, Step } from "../program/step.ts";
import { readWindows } from "./hparams.ts";
import type { Model } from "./model.ts";
import { checkedRope, localRope, ropeOf } from "./rope.ts";
import { sequential } from "./sequential.ts";

/** The 27B models of Gemma 2 and 3 scale attention by width / heads instead of by the head size. */
const LAYERS_27B = { gemma2: 46, gemma3: 62 };

export const gemma = (model: Model): Step[] =>
  sequential(model, { rope: "neox", act: "gelu", embeddingScale: Math.sqrt(model.dim) });

/** Gemma 2: every other layer has a sliding window, and scores and logits are soft-capped. */
export function gemma2(model: Model): Step[] {
  const { keys } = model;
  return postNormed(model, {
    windows: readWindows(keys, model, { window: 4096, period: 2 }),
    rope: ropeOf(model, { style: "neox" }),
    layersOf27B: LAYERS_27B.gemma2,
    softCap: keys.number("attn_logit_softcapping", 50),
    logitCap: keys.number("final_logit_softcapping", 30),
  });
}

/**
 * Gemma 3: five layers with a sliding window and their own RoPE base per global layer, and QK-norm.
 * `rope.global.freq_base` and `rope.local.freq_base` are another converter's spelling.
 */
export function gemma3(model: Model): Step[] {
  const { keys } = model;
  const scaled = ropeOf(model, { style: "neox" });
  const globalBase = keys.number("rope.freq_base", keys.number("rope.global.freq_base", 10_000));
  const localBase = keys.number("rope.freq_base_swa", keys.number("rope.local.freq_base", 10_000));
  return postNormed(model, {
    windows: readWindows(keys, model, { window: 0, period: 6 }),
    rope: checkedRope(model, { ...scaled, base: globalBase }),
    local: localRope(model, scaled, { base: localBase }),
    layersOf27B: LAYERS_27B.gemma3,
    softCap: 0,
    needsQkNorm: true,
    logitCap: keys.number("final_logit_softcapping", 0),
  });
}

interface PostNormedOptions {
  /** Window of each layer; 0 for global layers. */
  readonly windows: readonly number[];
  readonly rope: RopeScaling;
  /** RoPE of layers with a window. */
  readonly local?: RopeScaling;
  readonly layersOf27B: number;
  /** Soft cap of attention scores; 0: none. */
  readonly softCap: number;
  /** As for `attention`. */
  readonly needsQkNorm?: boolean;
  readonly logitCap: number;
}

/** The output of each block is normed before it is added. */
function postNormed(model: Model, options: PostNormedOptions): Step[] {
  const { layersOf27B, ...others } = options;
  const { dim, nLayers, nHeads, headDim } = model;
  return sequential(model, {
    ...others,
    act: "gelu",
    embeddingScale: Math.sqrt(dim),
    scale: 1 / Math.sqrt(nLayers === layersOf27B ? dim / nHeads : headDim),
    attnPostNorm: "post_attention_norm",
    ffnPostNorm: "post_ffw_norm",
  });
}
