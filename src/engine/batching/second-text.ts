/**
 * The second text of a pair for encoders with token types, like BERT. Programs give every token the first type, so
 * tokens of the second text are given as vectors: their embedding plus the difference of the types.
 */
import { AppError } from "../../base/index.ts";
import type { Gguf } from "../formats/gguf/gguf.ts";
import type { StateRows } from "../program/backend.ts";
import type { EmbedText } from "./embed-queue.ts";

/** The vectors of some tokens, (tokens, dim). Throws `bad_request` for an id without an embedding. */
export type SecondText = (ids: Int32Array) => Float32Array;

/** Undefined for a model with a single token type. Throws `bad_file` for types of another width. */
export function secondTextOf(gguf: Gguf, dim: number): SecondText | undefined {
  const types = gguf.tensors.get("token_types.weight");
  const embeddings = gguf.tensors.get("token_embd.weight");
  if (!types || !embeddings || (types.shape[1] ?? 1) < 2) return undefined;
  for (const { name, shape, quant } of [types, embeddings]) {
    if (shape[0] !== dim || dim % quant.blockLen !== 0 || quant.unreadable) {
      throw new AppError(
        "bad_file",
        `${gguf.path}: tensor '${name}': expected rows of ${dim}, got (${shape.join(", ")})`,
      );
    }
  }
  const rowOf = ({ name, quant }: typeof types, row: number): Float32Array => {
    const bytes = (dim / quant.blockLen) * quant.blockBytes;
    const out = new Float32Array(dim);
    quant.dequantize(gguf.read(name).subarray(row * bytes, (row + 1) * bytes), out);
    return out;
  };
  const [first, second] = [rowOf(types, 0), rowOf(types, 1)];
  const rows = embeddings.shape[1] ?? 1;
  const change = first.map((value, i) => second[i]! - value);
  return (ids) => {
    const out = new Float32Array(ids.length * dim);
    for (const [i, id] of ids.entries()) {
      if (id < 0 || id >= rows) throw new AppError("bad_request", `token ${id}: expected an id of 0 … ${rows - 1}`);
      const row = rowOf(embeddings, id);
      for (let j = 0; j < dim; j++) out[i * dim + j] = row[j]! + change[j]!;
    }
    return out;
  };
}

/** A text's rows: ids for its first text, vectors for its second text. */
export function rowsOf(
  { tokens, second = tokens.length }: EmbedText,
  secondText: SecondText | undefined,
): Pick<StateRows, "tokens" | "vectors"> {
  if (!secondText || second >= tokens.length) return { tokens };
  return { tokens: tokens.slice().fill(-1, second), vectors: secondText(tokens.subarray(second)) };
}
