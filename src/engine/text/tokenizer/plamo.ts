/**
 * PLaMo 2: splits text into the pieces with the largest sum of scores; characters without a piece become bytes. Ported
 * from `llm_tokenizer_plamo2` in llama-vocab.cpp, whose table of suffixes finds the same pieces.
 */
import { AppError } from "../../../base/index.ts";
import { pushId } from "./id-list.ts";
import { extendHash, findPiece, findRange } from "./piece-index.ts";
import { BYTE, CONTROL, UNKNOWN } from "./special-tokens.ts";
import { PIECES_KEY, type Vocabulary } from "./vocabulary.ts";
import type { Encode } from "./word-cache.ts";

/** Scores are compared as integers, in units of 1 / this. */
const SCORE_STEPS = 1e4;
/** Cost of a character that becomes bytes. */
const UNKNOWN_COST = 10_000_000;
/** Pieces of this cost are never used. */
const COST_MAX = 20_000_000;
/** llama.cpp recognises control tokens in any text; here they are split out earlier. */
const NO_TEXT = BYTE | CONTROL | UNKNOWN;
const BYTE_ORDER_MARK = "\ufeff";

/** @param scores (pieces) log-probability of each. Throws `bad_file` if the vocabulary lacks a byte. */
export function makePlamo(vocabulary: Vocabulary, scores: Float32Array): Encode {
  const { pieces, attributes, index } = vocabulary;
  const bytes = byteIds(vocabulary);
  const costs = Float64Array.from(scores, costOf);
  const longestFrom = new Map<number, number>();
  for (const piece of pieces) {
    const unit = piece.charCodeAt(0);
    longestFrom.set(unit, Math.max(longestFrom.get(unit) ?? 0, piece.length));
  }
  const utf8 = new TextEncoder();

  return (given, out) => {
    const text = given.startsWith(BYTE_ORDER_MARK) ? given.slice(1) : given;
    const cost = new Float64Array(text.length + 1).fill(Infinity); // cost of the best split of the rest
    const first = new Int32Array(text.length).fill(-1); // its first piece; -1: bytes
    const ends = new Int32Array(text.length);
    cost[text.length] = 0;
    for (let at = text.length - 1; at >= 0; at--) {
      const next = at + (text.codePointAt(at)! > 0xffff ? 2 : 1);
      if (at > 0 && isPair(text, at - 1)) continue; // within a surrogate pair
      const end = Math.min(text.length, at + (longestFrom.get(text.charCodeAt(at)) ?? 0));
      for (let to = at, hash = 0; to < end;) {
        hash = extendHash(hash, text.charCodeAt(to++));
        const id = findRange(index, text, at, to, hash);
        if (id < 0 || (attributes[id]! & NO_TEXT) !== 0 || costs[id]! >= COST_MAX) continue;
        if (cost[to]! + costs[id]! > cost[at]!) continue; // among equal costs the longest piece wins
        cost[at] = cost[to]! + costs[id]!;
        first[at] = id;
        ends[at] = to;
      }
      if (cost[next]! + UNKNOWN_COST >= cost[at]!) continue;
      cost[at] = cost[next]! + UNKNOWN_COST;
      first[at] = -1;
      ends[at] = next;
    }
    for (let at = 0; at < text.length; at = ends[at]!) {
      if (first[at]! >= 0) pushId(out, first[at]!);
      else for (const byte of utf8.encode(text.slice(at, ends[at]))) pushId(out, bytes[byte]!);
    }
  };
}

/** Halves round away from 0, as in C; a piece whose score is NaN is never used. */
function costOf(score: number): number {
  if (!Number.isFinite(score)) return COST_MAX;
  return -Math.sign(score) * Math.round(Math.abs(score) * SCORE_STEPS);
}

const isPair = (text: string, at: number): boolean => text.codePointAt(at)! > 0xffff;

function byteIds({ attributes, index }: Vocabulary): Int32Array {
  return Int32Array.from({ length: 256 }, (_, byte) => {
    const piece = `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;
    const id = findPiece(index, piece);
    if (id >= 0 && (attributes[id]! & BYTE) !== 0) return id;
    throw new AppError("bad_file", `metadata '${PIECES_KEY}': expected a piece '${piece}' for a byte, got none`);
  });
}
