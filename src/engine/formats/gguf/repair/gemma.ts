/** Gemma 3, EmbeddingGemma, Gemma 3n and Gemma 4. */
import { getStrings } from "../keys.ts";
import type { Draft } from "./draft.ts";
import { hasMedia, MEDIA_TENSORS, type Repair } from "./repair.ts";

const TOKENS = "tokenizer.ggml.tokens";
const TOKEN_TYPES = "tokenizer.ggml.token_type";
const SCORES = "tokenizer.ggml.scores";
const TYPE_NORMAL = 1;
const TYPE_BYTE = 6;

const PADDING_KEYS = ["add_padding_token", "add_unknown_token"].map((key) => `tokenizer.ggml.${key}`);
/** From this context on, the models were trained with positions divided by eight. */
const LONG_CONTEXT = 131_072;

/** Must come before `gemma3`, whose name its files have. */
export const embeddingGemma: Repair = {
  family: "EmbeddingGemma",
  applies: (draft) => draft.arch === "gemma3" && draft.hasTensor("dense.0.weight"),
  apply(draft) {
    draft.arch = "gemma-embedding";
    draft.delete("attention.causal");
    draft.delete("attention.sliding_window_pattern"); // its default of six layers says the same
    draft.setDefault("rope.freq_base_swa", 10_000);
    for (const [i, name] of ["dense_2", "dense_3"].entries()) {
      const [inDim = 0, outDim = 0] = draft.shape(`dense.${i}.weight`);
      draft.set(`${name}_feat_in`, inDim);
      draft.set(`${name}_feat_out`, outDim);
      draft.rename(new RegExp(`^dense\\.${i}\\.`), `${name}.`);
    }
    draft.rename(/^norm\./, "output_norm.");
  },
};

export const gemma3: Repair = {
  family: "Gemma 3",
  applies: (draft) =>
    draft.arch === "gemma3" &&
    (hasMedia(draft) ||
      ["mm.tokens_per_image", "rope.global.freq_base", "rope.local.freq_base"].some((key) => draft.has(key)) ||
      PADDING_KEYS.some((key) => draft.metadata.has(key)) ||
      !draft.has("attention.layer_norm_rms_epsilon")),
  apply(draft) {
    draft.move("rope.global.freq_base", "rope.freq_base");
    draft.move("rope.local.freq_base", "rope.freq_base_swa");
    draft.setDefault("attention.layer_norm_rms_epsilon", Math.fround(1e-6));
    draft.setDefault("rope.freq_base", 1_000_000);
    draft.setDefault("rope.freq_base_swa", 10_000);
    if (draft.number("context_length", 0) >= LONG_CONTEXT) {
      draft.setDefault("rope.scaling.type", "linear");
      draft.setDefault("rope.scaling.factor", 8);
    }
    for (const key of PADDING_KEYS) draft.metadata.delete(key);
    cutVocabulary(draft, draft.shape("token_embd.weight")[1]!);
    draft.hide(MEDIA_TENSORS);
  },
};

export const gemma3n: Repair = {
  family: "Gemma 3n",
  applies: (draft) =>
    draft.arch === "gemma3n" &&
    draft.hasTensor("token_embd.weight") &&
    draft.hasTensor("per_layer_token_embd.weight") &&
    draft.shape("token_embd.weight")[1] !== draft.shape("per_layer_token_embd.weight")[1],
  apply(draft) {
    const count = draft.shape("per_layer_token_embd.weight")[1]!;
    draft.metadata.set("tokenizer.ggml.model", "llama");
    draft.cutRows("token_embd.weight", count);
    cutVocabulary(draft, count);
    correctTypes(draft);
    if (draft.has("head_dim"))
      for (const key of ["key_length", "value_length"]) draft.setDefault(`attention.${key}`, draft.number("head_dim"));
    draft.move("rope.freq_base_local", "rope.freq_base_swa");
    draft.hide(MEDIA_TENSORS);
  },
};

export const gemma4: Repair = {
  family: "Gemma 4",
  applies: (draft) =>
    draft.arch === "gemma4" && (hasMedia(draft) || draft.metadata.get("tokenizer.ggml.model") === "llama"),
  apply(draft) {
    draft.metadata.set("tokenizer.ggml.model", "gemma4");
    draft.rename(/\.ffn_gate_inp\.per_expert_scale$/, ".ffn_down_exps.scale");
    draft.hide(MEDIA_TENSORS);
  },
};

/** Corrects the types of byte tokens and unused tokens, which the converter did not know. */
function correctTypes(draft: Draft): void {
  const types = draft.list(TOKEN_TYPES);
  if (!types) return;
  const pieces = getStrings(draft.metadata, TOKENS, []);
  const typeOf = (piece: string, stored: number): number =>
    /^<0x[0-9A-Fa-f]{2}>$/.test(piece) ? TYPE_BYTE : piece.startsWith("<unused") ? TYPE_NORMAL : stored;
  draft.metadata.set(
    TOKEN_TYPES,
    Int32Array.from(types, (type, id) => typeOf(pieces[id] ?? "", type)),
  );
}

/** Drops tokens without a row in the embedding. */
function cutVocabulary(draft: Draft, count: number): void {
  const pieces = getStrings(draft.metadata, TOKENS, []);
  if (pieces.length <= count) return;
  draft.metadata.set(TOKENS, pieces.slice(0, count));
  const [scores, types] = [draft.list(SCORES), draft.list(TOKEN_TYPES)];
  if (scores) draft.metadata.set(SCORES, Float32Array.from(scores.slice(0, count)));
  if (types) draft.metadata.set(TOKEN_TYPES, Int32Array.from(types.slice(0, count)));
}
