/**
 * Diffusion language models: every row attends to all others, and the logits of a masked position predict its token.
 * Semantics: the files of the same names in llama.cpp's src/models.
 */
import type { DiffusionTraits } from "../program/diffusion.ts";
import type { Step } from "../program/step.ts";
import { AppError } from "../../base/index.ts";
import type { Gguf } from "../formats/gguf/gguf.ts";
import { getBool } from "../formats/gguf/keys.ts";
import { withExperts } from "./experts.ts";
import type { Model } from "./model.ts";
import { sequential } from "./sequential.ts";

/** Llama without biases of attention's output and of the MLP. */
export const llada = (model: Model): Step[] =>
  sequential(model, {
    rope: "norm",
    factors: false,
    bidirectional: true,
    bareResult: true,
    bareMlp: true,
    bareLogits: true,
  });
/** OLMoE with norms of each head. */
export const lladaMoe = (model: Model): Step[] =>
  withExperts(model, { ...experts, normalize: false, bareResult: true, needsQkNorm: true });
/** Qwen 2. */
export const dream = (model: Model): Step[] =>
  sequential(model, { rope: "neox", bidirectional: true, bareMlp: true, bareLogits: true });
/** Qwen 3 with experts. */
export const rnd1 = (model: Model): Step[] => withExperts(model, { ...experts, normalize: true, needsQkNorm: true });

const experts = { rope: "neox", bidirectional: true } as const;

const MASK_KEY = "tokenizer.ggml.mask_token_id";

/** Throws `bad_file` if the vocabulary has no mask token. */
export function diffusionTraits(
  gguf: Gguf,
  { vocabSize, blocks }: { vocabSize: number; blocks: boolean },
): DiffusionTraits {
  const { metadata, path } = gguf;
  const mask = metadata.get(MASK_KEY);
  if (typeof mask === "number" && Number.isInteger(mask) && mask >= 0 && mask < vocabSize)
    return { mask, shifts: getBool(metadata, "diffusion.shift_logits", true), blocks };
  const got = typeof mask === "number" ? mask : "none";
  throw new AppError("bad_file", `${path}: '${MASK_KEY}': expected an id of 0 … ${vocabSize - 1}, got ${got}`);
}
