/** Log-probabilities in completions: the `logprobs` of the OpenAI API, and the `prompt_logprobs` of vLLM. */
import type { ChosenLogprob, PromptLogprob } from "../../runtime/portable.ts";

/** Bytes after a token that differs from the text, in which the next one is searched. */
const SEARCHED_BYTES = 32;

/** Characters of a text as Python counts them, and most clients of this API: code points. */
export const lengthOf = (text: string): number => Array.from(text).length;

/**
 * The tokens of a prompt, then the tokens of its answer; null if they were not requested.
 * @param about.echo the text of the prompt; empty if the answer's text does not begin with it
 * @param about.start characters before the first token of the answer
 * @param about.count number of alternatives; undefined: no log-probabilities
 */
export function legacyLogprobs(
  prompt: readonly PromptLogprob[],
  answer: readonly ChosenLogprob[],
  { echo, start, count }: { readonly echo: string; readonly start: number; readonly count: number | undefined },
): object | null {
  if (count === undefined) return null;
  const all = [...prompt, ...answer];
  return {
    tokens: all.map(({ token }) => token),
    token_logprobs: all.map(({ logprob = null }) => logprob),
    top_logprobs: all.map((each) => (each.logprob === undefined ? null : alternatives(each, count))),
    text_offset: [...offsetsIn(echo, prompt), ...offsetsFrom(start, answer)],
  };
}

/** The likeliest tokens and the token itself. Tokens with the same text count as the likeliest one. */
function alternatives({ token, logprob, top }: PromptLogprob, count: number): object {
  const found = new Map<string, number>();
  for (const each of top.slice(0, count)) if (!found.has(each.token)) found.set(each.token, each.logprob);
  if (!found.has(token) && logprob !== undefined) found.set(token, logprob);
  return Object.fromEntries(found);
}

function offsetsFrom(start: number, tokens: readonly ChosenLogprob[]): number[] {
  let at = start;
  return tokens.map(({ token }) => {
    const offset = at;
    at += lengthOf(token);
    return offset;
  });
}

/**
 * The character of a text at which each of its tokens begins. Tokens that the text does not show, as the one that
 * begins a sequence, have no length, and neither has the space that SentencePiece puts before a text.
 */
export function offsetsIn(text: string, tokens: readonly Pick<PromptLogprob, "bytes">[]): number[] {
  const all = new TextEncoder().encode(text);
  let [at, counted, characters] = [0, 0, 0];
  const isInside = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;
  const offset = (): number => {
    for (; counted < at; counted++) if (!isInside(all[counted])) characters++;
    return isInside(all[at]) ? characters - 1 : characters;
  };
  const isAt = (bytes: readonly number[], from: number): boolean =>
    bytes.every((byte, i) => all[from + i] === byte) && bytes.length > 0;
  return tokens.map(({ bytes }) => {
    if (isAt(bytes, at)) return advance(bytes.length);
    const bare = bytes[0] === 0x20 ? bytes.slice(1) : [];
    if (isAt(bare, at)) return advance(bare.length);
    for (let from = at + 1; from <= at + SEARCHED_BYTES; from++) {
      if (!isAt(bytes, from)) continue;
      at = from; // tokenizers change a few texts: case, accents
      return advance(bytes.length);
    }
    return offset();
  });

  function advance(by: number): number {
    const first = offset();
    at += by;
    return first;
  }
}

/** The field of vLLM: null for a token without a probability, else it and its alternatives by their ids. */
export const promptLogprobsField = (tokens: readonly PromptLogprob[], count: number): (object | null)[] =>
  tokens.map(({ top, ...own }) => {
    if (own.logprob === undefined) return null;
    const ranked = [own, ...top.slice(0, count).map((each, i) => ({ ...each, rank: i + 1 }))];
    return Object.fromEntries(
      ranked.map(({ id, token, logprob, rank }) => [id, { logprob, rank, decoded_token: token }]),
    );
  });
