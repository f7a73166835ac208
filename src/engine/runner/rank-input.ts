/** A query and a document as one text for a reranking model: between special tokens, or in its prompt. */
import { AppError } from "../../base/index.ts";
import type { TextSegment, Tokenizer } from "../text/tokenizer/tokenizer.ts";

type PairTokenizer = Pick<Tokenizer, "encode" | "detokenize" | "before" | "after" | "family">;

interface Limits {
  readonly limit: number;
  readonly truncate: boolean;
  /** The document's, for errors. */
  readonly index: number;
}

export interface PairEncoder {
  /** Index of the document's first token; undefined if the pair is one prompt. */
  readonly second: number | undefined;
  /**
   * The ids of a pair, at most `limit`: a document that is too long is truncated if allowed. Throws `bad_request` if
   * truncation is not allowed, or if the whole document would be cut off.
   */
  encode(document: string, limits: Limits): Int32Array;
}

/** @param prompt with `{query}` and `{document}`; undefined: special tokens separate the two */
export const pairEncoder = (tokenizer: PairTokenizer, query: string, prompt: string | undefined): PairEncoder =>
  prompt === undefined ? betweenTokens(tokenizer, query) : inPrompt(tokenizer, query, prompt);

/** Text from outside stays text, even if it spells a control token. */
const encodeText = (tokenizer: PairTokenizer, text: string): Int32Array =>
  tokenizer.encode(text, { addSpecial: false, parseSpecial: false });

function checkRoom(room: number, needed: number, { limit, truncate, index }: Limits): void {
  if (needed > room && !truncate) {
    throw new AppError("bad_request", `documents[${index}]: the input length exceeds the context length`);
  }
  if (room < 1)
    throw new AppError("bad_request", `query: expected one that leaves room for a document in ${limit} tokens`);
}

/** [CLS] query [SEP] document [SEP], or <s> query </s></s> document </s>. */
function betweenTokens(tokenizer: PairTokenizer, query: string): PairEncoder {
  const { before, after, family } = tokenizer;
  const end = after === undefined ? [] : [after];
  const between = family === "wpm" ? end : [...end, ...end];
  const first = [...(before === undefined ? [] : [before]), ...encodeText(tokenizer, query), ...between];
  return {
    second: first.length,
    encode(text, limits) {
      const document = encodeText(tokenizer, text);
      const room = limits.limit - first.length - end.length;
      checkRoom(room, document.length, limits);
      return Int32Array.from([...first, ...document.subarray(0, room), ...end]);
    },
  };
}

/** As one text, because words may begin in the prompt and end in the query or document. */
function inPrompt(tokenizer: PairTokenizer, query: string, prompt: string): PairEncoder {
  // Without a placeholder: appended
  const parts = prompt.includes("{document}") ? prompt.split("{document}") : [prompt, ""];
  const markup = parts.map((part) =>
    part
      .split("{query}")
      .flatMap((text, i): TextSegment[] => [
        ...(i === 0 ? [] : [{ text: query, control: false }]),
        { text, control: true },
      ]),
  );
  const around = (document: string): Int32Array =>
    tokenizer.encode(
      markup.flatMap((segments, i) => (i === 0 ? segments : [{ text: document, control: false }, ...segments])),
      { addSpecial: false, parseSpecial: true },
    );
  const documents = parts.length - 1;
  let taken: number | undefined; // ids of the prompt and the query
  return {
    second: undefined,
    encode(text, limits) {
      const room = Math.floor((limits.limit - (taken ??= around("").length)) / documents);
      checkRoom(room, 0, limits); // checked before the query is tokenized with each document
      const whole = around(text);
      if (whole.length <= limits.limit) return whole;
      const document = encodeText(tokenizer, text);
      for (let shown = Math.min(room, document.length - 1); ; shown--) {
        checkRoom(shown, document.length, limits);
        const start = tokenizer.detokenize(document.subarray(0, shown)).replace(/\uFFFD+$/, ""); // no half characters
        const ids = around(start);
        if (ids.length <= limits.limit) return ids;
      }
    },
  };
}
