/**
 * GGUF metadata in replies: the file's keys, with long arrays emptied unless all was requested. Arrays are not copied
 * from the file's; `json-pieces.ts` writes them.
 */
import type { ModelHeader } from "../../engine/formats/index.ts";
import { describeGguf } from "../../library/index.ts";
import { jsonNumber } from "../http/json-pieces.ts";

/** Shown elsewhere in the reply, or irrelevant. */
const HIDDEN: ReadonlySet<string> = new Set(["general.name", "tokenizer.chat_template"]);
/** The vocabulary: emptied at any length. */
const VOCABULARY: ReadonlySet<string> = new Set([
  "tokenizer.ggml.merges",
  "tokenizer.ggml.token_type",
  "tokenizer.ggml.tokens",
]);
/** Longer arrays are emptied, as Ollama does. */
export const ARRAY_ITEMS_MAX = 5;

export function modelInfo(
  header: Pick<ModelHeader, "metadata" | "tensors">,
  verbose: boolean,
): Record<string, unknown> {
  const info: Record<string, unknown> = {};
  for (const [key, value] of header.metadata) {
    if (HIDDEN.has(key)) continue;
    if (typeof value === "object") {
      const isLong = VOCABULARY.has(key) || value.length > ARRAY_ITEMS_MAX;
      info[key] = isLong && !verbose ? [] : value;
    } else info[key] = typeof value === "number" || typeof value === "bigint" ? jsonNumber(value) : value;
  }
  info["general.parameter_count"] ??= describeGguf(header).parameterCount;
  return info;
}

/** Names, block types and shapes (fastest-varying dimension first), in the order of the file. */
export function tensorList({ tensors }: Pick<ModelHeader, "tensors">): object[] {
  return Array.from(tensors.values(), ({ name, quant, shape }) => ({ name, type: quant.name.toUpperCase(), shape }));
}
