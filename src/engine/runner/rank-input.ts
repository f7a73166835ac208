/** A query and a document as one text for a reranking model: between special tokens, or in its prompt. */
import { AppError } from "../../base/index.ts";
import type { Tokenizer } from "../text/tokenizer/tokenizer.ts";

type PairTokenizer = Pick<Tokenizer, "encode" | "before" | "after" | "family">;

/** Ids before the document, between its places if there are several, and after it. */
export type Around = readonly (readonly number[])[];

/**
 * The ids around each document of a query.
 * @param prompt with `{query}` and `{document}`; undefined: special tokens separate the two
 */
export const encodeAround = (tokenizer: PairTokenizer, query: string, prompt: string | undefined): Around =>
  prompt === undefined ? aroundTokens(tokenizer, query) : aroundPrompt(tokenizer, query, prompt);

/**
 * The ids of a pair, at most `limit`: a document that is too long is truncated if allowed. Throws `bad_request` if
 * truncation is not allowed, or nothing is left of the document.
 */
export function encodePair(
  tokenizer: PairTokenizer,
  { around: parts, document: text }: { around: Around; document: string },
  { limit, truncate, index }: { limit: number; truncate: boolean; index: number },
): Int32Array {
  const document = encodeText(tokenizer, text);
  const taken = parts.reduce((sum, { length }) => sum + length, 0);
  const room = Math.floor((limit - taken) / Math.max(1, parts.length - 1));
  if (document.length > room && !truncate) {
    throw new AppError("bad_request", `documents[${index}]: the input length exceeds the context length`);
  }
  if (room < 1)
    throw new AppError("bad_request", `query: expected one that leaves room for a document in ${limit} tokens`);
  const shown = document.subarray(0, room);
  return Int32Array.from(parts.flatMap((part, i) => (i === 0 ? part : [...shown, ...part])));
}

/** Text from outside stays text, even if it spells a control token. */
const encodeText = (tokenizer: PairTokenizer, text: string): Int32Array =>
  tokenizer.encode(text, { addSpecial: false, parseSpecial: false });

/** [CLS] query [SEP] document [SEP], or <s> query </s></s> document </s>. */
function aroundTokens(tokenizer: PairTokenizer, query: string): Around {
  const { before, after, family } = tokenizer;
  const end = after === undefined ? [] : [after];
  const between = family === "wpm" ? end : [...end, ...end];
  return [[...(before === undefined ? [] : [before]), ...encodeText(tokenizer, query), ...between], end];
}

function aroundPrompt(tokenizer: PairTokenizer, query: string, prompt: string): Around {
  const markup = (text: string): Int32Array => tokenizer.encode(text, { addSpecial: false, parseSpecial: true });
  const asked = encodeText(tokenizer, query);
  const read = (part: string): number[] =>
    part.split("{query}").flatMap((text, i) => [...(i === 0 ? [] : asked), ...markup(text)]);
  const parts = prompt.split("{document}").map(read);
  return parts.length > 1 ? parts : [...parts, []]; // a prompt without a place for it: appended
}
