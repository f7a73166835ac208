/**
 * Unigram (T5, XLM-R): normalizes text, and splits it into the pieces with the largest sum of scores. Ported from
 * `llm_tokenizer_ugm_session` in llama-vocab.cpp.
 */
import type { Normalize } from "./charsmap.ts";
import { SPACE } from "./code-points.ts";
import { makeIdList, pushId } from "./id-list.ts";
import { extendHash, findRange } from "./piece-index.ts";
import { NORMAL, UNUSED, USER_DEFINED } from "./special-tokens.ts";
import type { Vocabulary } from "./vocabulary.ts";
import type { Encode } from "./word-cache.ts";

/** Penalty of an unknown character, below the worst piece. */
const UNKNOWN_PENALTY = 10;

interface UnigramOptions {
  /** (pieces) log-probability of each. */
  readonly scores: Float32Array;
  readonly normalize: Normalize;
  /** True if a run of spaces counts as one space before each word, and is removed at the ends. */
  readonly removeExtraSpaces: boolean;
}

export function makeUnigram(vocabulary: Vocabulary, { scores, normalize, removeExtraSpaces }: UnigramOptions): Encode {
  const { pieces, attributes, index, unknown = -1, addSpacePrefix } = vocabulary;
  const longestFrom = longestPieces(pieces);
  const unknownScore = worstScore(vocabulary, scores) - UNKNOWN_PENALTY;
  const scoreOf = (id: number): number => ((attributes[id]! & USER_DEFINED) !== 0 ? 0 : scores[id]!);
  const isText = (id: number): boolean => (attributes[id]! & (NORMAL | USER_DEFINED | UNUSED)) !== 0;

  /** For each end of a prefix of the text: the last piece of its best split, its start, and the split's score. */
  const bestCuts = (text: string) => {
    const last = new Int32Array(text.length + 1).fill(unknown);
    const start = new Int32Array(text.length + 1);
    const sum = new Float64Array(text.length + 1).fill(-Infinity);
    sum[0] = 0;
    const offer = (from: number, to: number, id: number, score: number): void => {
      if (sum[from]! + score <= sum[to]!) return;
      sum[to] = sum[from]! + score;
      last[to] = id;
      start[to] = from;
    };
    for (let at = 0; at < text.length;) {
      const next = at + (text.codePointAt(at)! > 0xffff ? 2 : 1);
      const end = Math.min(text.length, at + (longestFrom.get(text.charCodeAt(at)) ?? 0));
      let isPiece = false; // true if the single character is a piece
      for (let to = at, hash = 0; to < end;) {
        hash = extendHash(hash, text.charCodeAt(to++));
        const id = findRange(index, text, at, to, hash);
        if (id < 0 || !isText(id)) continue;
        if (to === next) isPiece = true;
        offer(at, to, id, scoreOf(id));
      }
      if (!isPiece) offer(at, next, unknown, unknownScore);
      at = next;
    }
    return { last, start };
  };

  return (text, out) => {
    const words = spaced(normalize(text), { addSpacePrefix, removeExtraSpaces });
    if (words === "") return;
    const { last, start } = bestCuts(words);
    const backwards = makeIdList(words.length / 2);
    for (let end = words.length; end > 0; end = start[end]!) {
      const repeated = backwards.length > 0 && backwards.ids[backwards.length - 1] === unknown;
      if (!(repeated && last[end] === unknown)) pushId(backwards, last[end]!);
    }
    for (let i = backwards.length - 1; i >= 0; i--) if (backwards.ids[i]! >= 0) pushId(out, backwards.ids[i]!);
  };
}

/** Spaces as `▁`. */
function spaced(text: string, options: { addSpacePrefix: boolean; removeExtraSpaces: boolean }): string {
  if (options.removeExtraSpaces) {
    const words = text.match(/[^ ]+/g) ?? [];
    return words.map((word) => SPACE + word).join("");
  }
  // The prefix is added before the first character other than a space.
  const marked = options.addSpacePrefix ? text.replace(/[^ ]/u, ` $&`) : text;
  return marked.replaceAll(" ", SPACE);
}

/** Length of the longest piece that begins with a UTF-16 unit. */
function longestPieces(pieces: readonly string[]): ReadonlyMap<number, number> {
  const longest = new Map<number, number>();
  for (const piece of pieces) {
    const unit = piece.charCodeAt(0);
    longest.set(unit, Math.max(longest.get(unit) ?? 0, piece.length));
  }
  return longest;
}

function worstScore({ attributes }: Vocabulary, scores: Float32Array): number {
  let worst = Infinity;
  for (const [id, score] of scores.entries()) if ((attributes[id]! & NORMAL) !== 0) worst = Math.min(worst, score);
  return worst === Infinity ? 0 : worst;
}
