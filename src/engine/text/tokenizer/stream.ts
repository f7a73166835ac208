/** Ids to text while they are generated. */
import type { StreamDetokenizer, Tokenizer } from "./tokenizer.ts";

/**
 * The detokenizer of one sequence. A leading space stays: a stream continues a text.
 * @param visible control tokens that come out as text; the others give none
 */
export function makeStreamDetokenizer(
  tokenizer: Tokenizer,
  visible: ReadonlySet<number> = new Set(),
): StreamDetokenizer {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return {
    push: (id) => decoder.decode(tokenizer.bytesOf(id, { special: visible.has(id) }), { stream: true }),
    end: () => decoder.decode(),
  };
}
