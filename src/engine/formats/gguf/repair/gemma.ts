/** Gemma 3, EmbeddingGemma, Gemma 3n and Gemma 4. */
import { getStrings } from "../keys.ts";
import type { EditableHeader } from "./editable-header.ts";
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
  applies: (header) => header.arch === "gemma3" && header.hasTensor("dense.0.weight"),
  apply(header) {
    header.arch = "gemma-embedding";
    header.delete("attention.causal");
    header.delete("attention.sliding_window_pattern"); // the key's default of six layers is equivalent
    header.setDefault("rope.freq_base_swa", 10_000);
    for (const [i, name] of ["dense_2", "dense_3"].entries()) {
      const [inDim = 0, outDim = 0] = header.shape(`dense.${i}.weight`);
      header.set(`${name}_feat_in`, inDim);
      header.set(`${name}_feat_out`, outDim);
      header.rename(new RegExp(`^dense\\.${i}\\.`), `${name}.`);
    }
    header.rename(/^norm\./, "output_norm.");
  },
};

export const gemma3: Repair = {
  family: "Gemma 3",
  applies: (header) =>
    header.arch === "gemma3" &&
    (hasMedia(header) ||
      ["mm.tokens_per_image", "rope.global.freq_base", "rope.local.freq_base"].some((key) => header.has(key)) ||
      PADDING_KEYS.some((key) => header.metadata.has(key)) ||
      !header.has("attention.layer_norm_rms_epsilon")),
  apply(header) {
    header.move("rope.global.freq_base", "rope.freq_base");
    header.move("rope.local.freq_base", "rope.freq_base_swa");
    header.setDefault("attention.layer_norm_rms_epsilon", Math.fround(1e-6));
    header.setDefault("rope.freq_base", 1_000_000);
    header.setDefault("rope.freq_base_swa", 10_000);
    if (header.number("context_length", 0) >= LONG_CONTEXT) {
      header.setDefault("rope.scaling.type", "linear");
      header.setDefault("rope.scaling.factor", 8);
    }
    for (const key of PADDING_KEYS) header.metadata.delete(key);
    cutVocabulary(header, header.shape("token_embd.weight")[1]!);
    header.hide(MEDIA_TENSORS);
  },
};

export const gemma3n: Repair = {
  family: "Gemma 3n",
  applies: (header) =>
    header.arch === "gemma3n" &&
    header.hasTensor("token_embd.weight") &&
    header.hasTensor("per_layer_token_embd.weight") &&
    header.shape("token_embd.weight")[1] !== header.shape("per_layer_token_embd.weight")[1],
  apply(header) {
    const count = header.shape("per_layer_token_embd.weight")[1]!;
    header.metadata.set("tokenizer.ggml.model", "llama");
    header.cutRows("token_embd.weight", count);
    cutVocabulary(header, count);
    correctTypes(header);
    if (header.has("head_dim"))
      for (const key of ["key_length", "value_length"])
        header.setDefault(`attention.${key}`, header.number("head_dim"));
    header.move("rope.freq_base_local", "rope.freq_base_swa");
    header.hide(MEDIA_TENSORS);
  },
};

export const gemma4: Repair = {
  family: "Gemma 4",
  applies: (header) =>
    header.arch === "gemma4" && (hasMedia(header) || header.metadata.get("tokenizer.ggml.model") === "llama"),
  apply(header) {
    header.metadata.set("tokenizer.ggml.model", "gemma4");
    header.rename(/\.ffn_gate_inp\.per_expert_scale$/, ".ffn_down_exps.scale");
    header.hide(MEDIA_TENSORS);
  },
};

/** Corrects the types of byte tokens and unused tokens, which the converter did not know. */
function correctTypes(header: EditableHeader): void {
  const types = header.list(TOKEN_TYPES);
  if (!types) return;
  const pieces = getStrings(header.metadata, TOKENS, []);
  const typeOf = (piece: string, stored: number): number =>
    /^<0x[0-9A-Fa-f]{2}>$/.test(piece) ? TYPE_BYTE : piece.startsWith("<unused") ? TYPE_NORMAL : stored;
  header.metadata.set(
    TOKEN_TYPES,
    Int32Array.from(types, (type, id) => typeOf(pieces[id] ?? "", type)),
  );
}

/** Drops tokens without a row in the embedding. */
function cutVocabulary(header: EditableHeader, count: number): void {
  const pieces = getStrings(header.metadata, TOKENS, []);
  if (pieces.length <= count) return;
  header.metadata.set(TOKENS, pieces.slice(0, count));
  const [scores, types] = [header.list(SCORES), header.list(TOKEN_TYPES)];
  if (scores) header.metadata.set(SCORES, Float32Array.from(scores.slice(0, count)));
  if (types) header.metadata.set(TOKEN_TYPES, Int32Array.from(types.slice(0, count)));
}
