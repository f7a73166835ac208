/**
 * Llama 3.2 Vision, without images: Llama and layers of cross attention, which read an image and are skipped without
 * one. Their tensors are checked. Semantics: modeling_mllama.py of transformers, model/models/mllama of Ollama.
 */
import type { Step } from "../program/step.ts";
import { AppError } from "../../base/index.ts";
import { attention } from "./attention.ts";
import { decoder, feedForward, sequentialBlock } from "./decoder.ts";
import { mlp, type Model } from "./model.ts";
import { ropeOf } from "./rope.ts";

export function mllama(model: Model): Step[] {
  const rope = ropeOf(model, { style: "norm" });
  const crosses = crossLayers(model);
  return decoder(model, {
    block(layer) {
      if (crosses.has(layer)) {
        checkCrossLayer(model, layer);
        return [];
      }
      return sequentialBlock(model, layer, {
        attention: attention(model, layer, { rope }),
        ffn: feedForward(model, layer, { act: "silu" }),
      });
    },
  });
}

/** The layers of cross attention, by the file's list of them. */
function crossLayers({ keys, nLayers, path }: Model): ReadonlySet<number> {
  const key = "attention.cross_attention_layers";
  const layers = keys.find(key);
  const isLayer = (each: unknown): each is number =>
    Number.isSafeInteger(each) && Number(each) >= 0 && Number(each) < nLayers;
  const listed = typeof layers === "object" ? Array.from(layers as ArrayLike<unknown>) : [];
  if (listed.length > 0 && listed.length < nLayers && listed.every(isLayer)) return new Set(listed);
  const got = typeof layers === "object" ? `${listed.length} numbers` : String(layers);
  throw new AppError(
    "bad_file",
    `${path}: '${keys.arch}.${key}': expected numbers of some of ${nLayers} layers, got ${got}`,
  );
}

/** Reads the shapes of a skipped layer's tensors. */
function checkCrossLayer(model: Model, layer: number): void {
  const { dim, nHeads, nKvHeads, headDim } = model;
  const blk = `blk.${layer}`;
  for (const name of ["attn_norm", "ffn_norm"]) model.vector(`${blk}.${name}`, dim);
  for (const name of ["q", "k"]) model.vector(`${blk}.cross_attn_${name}_norm`, headDim);
  const widths = { q: nHeads * headDim, k: nKvHeads * headDim, v: nKvHeads * headDim };
  for (const [name, outDim] of Object.entries(widths))
    model.matrix(`${blk}.cross_attn_${name}_proj`, { inDim: dim, outDim });
  model.matrix(`${blk}.cross_attn_o_proj`, { inDim: nHeads * headDim, outDim: dim });
  for (const name of ["attn", "mlp"]) model.plain(`${blk}.cross_attn_${name}_gate`, { inDim: 1, outDim: 1 });
  mlp(model, layer);
}
