/** Decodes ids to text during generation. */
import type { StreamDetokenizer, Tokenizer } from "./tokenizer.ts";

/**
 * The detokenizer of one sequence. A leading space is kept, because a stream continues a text.
 * @param visible control tokens that are shown as text; the others are silent
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
