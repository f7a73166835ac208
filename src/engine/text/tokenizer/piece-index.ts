/**
 * Finds the id of a piece by its text. The hash is a polynomial, so the hash of a text follows from its halves' hashes:
 * a merge finds its left, right and joined piece without making a string. Open addressing in typed arrays: 128k pieces
 * are indexed in 15 ms.
 */
import { AppError } from "../../../base/index.ts";

/** Longest piece, in UTF-16 units; the longest published one has 1,024 (a run of spaces). */
const MAX_PIECE_LENGTH = 8192;
/** Maximum number of slots to search. A good hash needs about 60 at this load; a file made to collide is refused. */
export const MAX_PROBES = 1024;
const BASE = 0x01000193; // odd, so that powers never vanish modulo 2³²; the prime of FNV-1a

export interface PieceIndex {
  readonly pieces: readonly string[];
  /** (pieces) polynomial hash of each piece. */
  readonly hashes: Int32Array;
  /** (longest + 1) BASE to the power of a length. */
  readonly powers: Int32Array;
  /** (slots, 2): hash, then id or -1. The number of slots is a power of two. */
  readonly slots: Int32Array;
}

/** Indexes pieces. Throws `bad_file` naming `key` for two equal pieces, an overlong one, or a set made to collide. */
export function indexPieces(pieces: readonly string[], key: string): PieceIndex {
  let longest = 0;
  for (const piece of pieces) longest = Math.max(longest, piece.length);
  if (longest > MAX_PIECE_LENGTH) {
    throw new AppError("bad_file", `metadata '${key}': expected pieces of at most ${MAX_PIECE_LENGTH}, got ${longest}`);
  }
  const powers = new Int32Array(longest + 1).fill(1);
  for (let i = 1; i <= longest; i++) powers[i] = Math.imul(powers[i - 1]!, BASE);
  const slots = new Int32Array(2 * slotCount(pieces.length)).fill(-1);
  const index: PieceIndex = { pieces, hashes: new Int32Array(pieces.length), powers, slots };
  for (let id = 0; id < pieces.length; id++) insert(index, id, key);
  return index;
}

/** Number of slots for this many entries: a power of two, at least 1.5 times as many. */
export function slotCount(entries: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(16, entries * 1.5)));
}

function insert({ pieces, hashes, slots }: PieceIndex, id: number, key: string): void {
  const piece = pieces[id]!;
  const hash = hashRange(piece, 0, piece.length);
  hashes[id] = hash;
  const mask = slots.length - 2;
  let at = scatter(hash) & mask;
  for (let probes = 0; slots[at + 1]! >= 0; probes++, at = (at + 2) & mask) {
    const other = slots[at + 1]!;
    if (slots[at] === hash && pieces[other] === piece) {
      throw new AppError(
        "bad_file",
        `metadata '${key}': expected each piece once, got ${JSON.stringify(piece)} as ${other} and ${id}`,
      );
    }
    if (probes === MAX_PROBES) {
      throw new AppError("bad_file", `metadata '${key}': more than ${MAX_PROBES} pieces share a hash`);
    }
  }
  slots[at] = hash;
  slots[at + 1] = id;
}

/** Hash of `text[start, end)`. */
export function hashRange(text: string, start: number, end: number): number {
  let hash = 0;
  for (let i = start; i < end; i++) hash = (Math.imul(hash, BASE) + text.charCodeAt(i) + 1) | 0;
  return hash;
}

/** The hash of a text extended by one UTF-16 unit. */
export function extendHash(hash: number, unit: number): number {
  return (Math.imul(hash, BASE) + unit + 1) | 0;
}

/** Maps a hash to a slot. */
export function scatter(hash: number): number {
  const mixed = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return (mixed ^ (mixed >>> 13)) << 1;
}

/** Id of a piece, or -1. */
export function findPiece(index: PieceIndex, text: string): number {
  return findRange(index, text, 0, text.length, hashRange(text, 0, text.length));
}

/** Id of the piece `text[start, end)`, whose hash is given, or -1. */
export function findRange(index: PieceIndex, text: string, start: number, end: number, hash: number): number {
  const { slots, pieces } = index;
  const mask = slots.length - 2;
  for (let at = scatter(hash) & mask; slots[at + 1]! >= 0; at = (at + 2) & mask) {
    if (slots[at] !== hash) continue;
    const piece = pieces[slots[at + 1]!]!;
    if (piece.length === end - start && text.startsWith(piece, start)) return slots[at + 1]!;
  }
  return -1;
}

/** Id of the piece that is the left one followed by the right one, or -1. */
export function findJoined(index: PieceIndex, left: number, right: number): number {
  const { slots, pieces, hashes, powers } = index;
  const leftPiece = pieces[left]!;
  const rightPiece = pieces[right]!;
  const length = leftPiece.length + rightPiece.length;
  if (length >= powers.length) return -1;
  const hash = (Math.imul(hashes[left]!, powers[rightPiece.length]!) + hashes[right]!) | 0;
  const mask = slots.length - 2;
  for (let at = scatter(hash) & mask; slots[at + 1]! >= 0; at = (at + 2) & mask) {
    if (slots[at] !== hash) continue;
    const piece = pieces[slots[at + 1]!]!;
    if (piece.length === length && piece.startsWith(leftPiece) && piece.endsWith(rightPiece)) return slots[at + 1]!;
  }
  return -1;
}
