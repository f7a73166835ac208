/** Ids to text while they are generated. */
import type { StreamDetokenizer, Tokenizer } from "./tokenizer.ts";

/** The detokenizer of one sequence. A leading space stays: a stream continues a text. */
export function makeStreamDetokenizer(tokenizer: Tokenizer, options?: { special?: boolean }): StreamDetokenizer {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return {
    push: (id) => decoder.decode(tokenizer.bytesOf(id, options), { stream: true }),
    end: () => decoder.decode(),
  };
}
