/**
 * EmbeddingGemma: Gemma 3 as an encoder. Windows reach equally far in both directions. Two matrices follow the pooling;
 * because they are linear, they are applied before it here. Semantics: src/models/gemma-embedding.cpp and
 * build_dense_out of llama.cpp.
 */
import type { Step } from "../program/step.ts";
import { readWindows } from "./hparams.ts";
import { buffersOf, type Model } from "./model.ts";
import { localRope, ropeOf } from "./rope.ts";
import { sequential } from "./sequential.ts";

export function gemmaEmbedding(model: Model): Step[] {
  const { dim, keys } = model;
  const full = ropeOf(model, { style: "neox" });
  const local = localRope(model, full, { base: keys.number("rope.freq_base_swa", 10_000) });
  const windows = readWindows(keys, model, { window: 0, period: 6 });
  return sequential(model, {
    rope: full,
    local,
    windows,
    bidirectional: true,
    act: "gelu",
    embeddingScale: Math.sqrt(dim),
    encoder: dense(model),
    attnPostNorm: "post_attention_norm",
    ffnPostNorm: "post_ffw_norm",
  });
}

/** The matrices after the pooling, if the file has them: to a wider vector and back. */
function dense(model: Model): Step[] {
  const width = model.rows("dense_2");
  if (width === undefined) return [];
  const { dim } = model;
  const { last } = buffersOf(model);
  const wide = { name: "dense", dim: width };
  return [
    { op: "linear", out: wide, x: last, w: model.matrix("dense_2", { inDim: dim, outDim: width }) },
    { op: "linear", out: last, x: wide, w: model.matrix("dense_3", { inDim: width, outDim: dim }) },
  ];
}
