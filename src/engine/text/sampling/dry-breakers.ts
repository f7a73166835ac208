/**
 * The texts that end a repetition for DRY, as tokens: tokens that contain such a text, and tokens that begin it, with
 * the tokens that complete it.
 */
import { remembering } from "../../../base/index.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";

/** By the first token of a breaker: the tokens after it, empty if that token contains a whole breaker. */
export type Breakers = ReadonlyMap<number, readonly (readonly number[])[]>;

const BREAKER_BYTES_MAX = 40; // llama.cpp truncates longer ones, too
const TAIL_TOKENS_MAX = 20;

type Vocabulary = Pick<Tokenizer, "vocabSize" | "bytesOf" | "encode">;

/** Makes a function that finds the tokens of breakers. The texts of the vocabulary are read at first use. */
export function makeBreakers(vocabulary: Vocabulary): (texts: readonly string[]) => Breakers {
  let words: readonly string[] | undefined;
  return remembering((texts: readonly string[]) => {
    words ??= wordsOf(vocabulary);
    const breakers = new Map<number, (readonly number[])[]>();
    for (const text of texts) addBreaker(breakers, text, { words, vocabulary });
    return breakers;
  });
}

/** The bytes of each token, one character per byte. */
const wordsOf = (vocabulary: Vocabulary): string[] =>
  Array.from({ length: vocabulary.vocabSize }, (_, id) => latin1(vocabulary.bytesOf(id, { special: true })));

/** One character per byte. */
const latin1 = (bytes: Uint8Array): string => new TextDecoder("latin1").decode(bytes);

function addBreaker(
  breakers: Map<number, (readonly number[])[]>,
  text: string,
  { words, vocabulary }: { readonly words: readonly string[]; readonly vocabulary: Vocabulary },
): void {
  const bytes = new TextEncoder().encode(text).subarray(0, BREAKER_BYTES_MAX);
  const breaker = latin1(bytes);
  const tails: (readonly number[])[] = []; // by the bytes that the first token covers
  const tailAfter = (covered: number): readonly number[] => {
    const rest = new TextDecoder().decode(bytes.subarray(covered));
    return [...vocabulary.encode(rest, { addSpecial: false, parseSpecial: false })].slice(0, TAIL_TOKENS_MAX);
  };
  const add = (id: number, tail: readonly number[]): void => {
    const known = breakers.get(id);
    if (!known) breakers.set(id, [tail]);
    else if (!known.some((each) => `${each}` === `${tail}`)) known.push(tail);
  };
  for (const [id, word] of words.entries()) {
    if (word.includes(breaker)) {
      add(id, []);
      continue;
    }
    for (let covered = Math.min(word.length, breaker.length - 1); covered > 0; covered--)
      if (word.endsWith(breaker.slice(0, covered))) add(id, (tails[covered] ??= tailAfter(covered)));
  }
}
