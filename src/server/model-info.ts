/**
 * GGUF metadata as JSON: the keys as they stand in the file, long arrays emptied unless all of it was asked for.
 */
import type { Gguf, MetadataValue } from "../gguf/gguf.ts";
import { describeGguf } from "../store/details.ts";

/** Shown elsewhere in the reply, or of no interest. */
const HIDDEN: ReadonlySet<string> = new Set(["general.name", "tokenizer.chat_template"]);
/** The vocabulary: emptied whatever its length. */
const VOCABULARY: ReadonlySet<string> = new Set([
  "tokenizer.ggml.merges",
  "tokenizer.ggml.token_type",
  "tokenizer.ggml.tokens",
]);
const ARRAY_ITEMS_MAX = 5;

export function modelInfo(gguf: Pick<Gguf, "metadata" | "tensors">, verbose: boolean): Record<string, unknown> {
  const info: Record<string, unknown> = {};
  for (const [key, value] of gguf.metadata) {
    if (HIDDEN.has(key)) continue;
    const long = isArray(value) && (VOCABULARY.has(key) || value.length > ARRAY_ITEMS_MAX);
    info[key] = long && !verbose ? [] : jsonOf(value);
  }
  info["general.parameter_count"] ??= describeGguf(gguf).parameterCount;
  return info;
}

/** Names, block types and shapes (fastest-varying dimension first), in the order of the file. */
export function tensorList({ tensors }: Pick<Gguf, "tensors">): object[] {
  return Array.from(tensors.values(), ({ name, quant, shape }) => ({ name, type: quant.name.toUpperCase(), shape }));
}

function isArray(value: MetadataValue): value is Extract<MetadataValue, { length: number }> & object {
  return typeof value === "object";
}

function jsonOf(value: MetadataValue): unknown {
  if (isArray(value)) return Array.from(value as ArrayLike<MetadataValue>, jsonOf); // every array type is indexed
  if (typeof value === "bigint") return Number(value); // beyond 2^53: JSON readers would round it too
  return typeof value === "number" ? shortest(value) : value;
}

/** A float32 read as a double has a tail of digits that nobody wrote: 1e-5 comes out as 0.000009999999747378752. */
function shortest(value: number): number {
  if (Number.isInteger(value) || Math.fround(value) !== value) return value;
  for (let digits = 1; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return value;
}
