/**
 * Byte-level BPE: a word's UTF-8 bytes are symbols, and the file's list of merges joins them, the earliest in the list
 * first. Ported from `llm_tokenizer_bpe_session` in llama-vocab.cpp.
 */
import { AppError } from "../../../base/index.ts";
import { makeTextReader, type Texts } from "../../formats/gguf/texts.ts";
import { byteCharacters } from "./byte-alphabet.ts";
import { pushId, pushIds } from "./id-list.ts";
import { makeMergeScratch, MAX_SYMBOLS, mergeSymbols, type Merges } from "./merge.ts";
import {
  extendHash,
  findJoined,
  findPiece,
  hashRange,
  MAX_PROBES,
  scatter,
  slotCount,
  type PieceIndex,
} from "./piece-index.ts";
import { makeSplit, type PreTokenizer } from "./pretokenize.ts";
import { makeWordsEncoder, type Encode } from "./word-cache.ts";

/** Maximum number of merges; the longest published list has 514,906. */
const MAX_MERGES = 2 ** 22;
export const MERGES_KEY = "tokenizer.ggml.merges";

/**
 * Reads the list of merges, each "left right". Throws `bad_file` naming an invalid entry. Skips merges of pieces that
 * the vocabulary lacks, as some published files have. The first of duplicate pairs counts.
 *
 * Initially only the hashes of both pieces are computed; the pieces are looked up when a pair with these hashes is
 * requested.
 */
export function makePairMerges(index: PieceIndex, merges: Texts): Merges {
  const { length } = merges;
  if (length > MAX_MERGES) throw badMerges(`expected at most ${MAX_MERGES} merges, got ${length}`);
  const { pieces, hashes } = index;
  const textOf = makeTextReader(merges);
  const slots = indexMerges(merges, textOf);
  const mask = slots.length - 2;
  const lefts = new Int32Array(length).fill(-1); // not looked up yet
  const rights = new Int32Array(length);
  const result = new Int32Array(length);
  const rank = new Int32Array(length);
  for (let merge = 0; merge < length; merge++) rank[merge] = merge;
  const isPair = (merge: number, left: number, right: number): boolean => {
    if (lefts[merge]! >= 0) return lefts[merge] === left && rights[merge] === right;
    if (textOf(merge) !== `${pieces[left]} ${pieces[right]}`) return false;
    lefts[merge] = left;
    rights[merge] = right;
    result[merge] = findJoined(index, left, right);
    return true;
  };
  const find = (left: number, right: number): number => {
    if (left < 0 || right < 0) return -1;
    const hash = hashPair(hashes[left]!, hashes[right]!);
    for (let at = scatter(hash) & mask; slots[at + 1]! >= 0; at = (at + 2) & mask) {
      const merge = slots[at + 1]!;
      if (slots[at] === hash && isPair(merge, left, right)) return result[merge]! < 0 ? -1 : merge;
    }
    return -1;
  };
  return { find, rank, result };
}

/** (slots, 2): hash of a pair, then the first merge of that pair, or -1. */
function indexMerges(merges: Texts, textOf: (merge: number) => string): Int32Array {
  const { bytes, starts, ends } = merges;
  const slots = new Int32Array(2 * slotCount(merges.length)).fill(-1);
  const mask = slots.length - 2;
  for (let merge = 0; merge < merges.length; merge++) {
    const hash = hashOf(bytes, starts[merge]!, ends[merge]!) ?? hashOfText(textOf(merge), merge);
    let at = scatter(hash) & mask;
    for (let probes = 0; slots[at + 1]! >= 0; at = (at + 2) & mask) {
      if (slots[at] === hash && textOf(slots[at + 1]!) === textOf(merge)) break;
      if (++probes > MAX_PROBES) throw badMerges(`more than ${MAX_PROBES} merges share a hash`);
    }
    if (slots[at + 1]! >= 0) continue;
    slots[at] = hash;
    slots[at + 1] = merge;
  }
  return slots;
}

/**
 * The hash of a merge's pieces, as in `hashRange`; undefined unless plain UTF-8 of up to three bytes. This runs for
 * every merge before it is compiled, so nothing is destructured or allocated.
 */
function hashOf(bytes: Uint8Array, start: number, end: number): number | undefined {
  let left = 0;
  let hash = 0;
  let space = -1;
  for (let at = start; at < end; at++) {
    let unit = bytes[at]!;
    if (unit === 32 && space < 0 && at > start) {
      space = at;
      left = hash;
      hash = 0;
      continue;
    }
    if (unit >= 0x80) {
      const second = at + 1 < end ? bytes[at + 1]! : 0;
      if ((second & 0xc0) !== 0x80) return undefined;
      if (unit >= 0xc2 && unit < 0xe0) {
        unit = ((unit & 0x1f) << 6) | (second & 0x3f);
        at++;
      } else {
        const third = at + 2 < end ? bytes[at + 2]! : 0;
        // Other characters are rare or invalid
        if (unit < 0xe1 || unit > 0xec || (third & 0xc0) !== 0x80) return undefined;
        unit = ((unit & 0xf) << 12) | ((second & 0x3f) << 6) | (third & 0x3f);
        at += 2;
      }
    }
    hash = extendHash(hash, unit);
  }
  return space < 0 ? undefined : hashPair(left, hash);
}

/** The same for any text. */
function hashOfText(text: string, merge: number): number {
  const space = text.indexOf(" ", 1);
  if (space < 0) throw badMerges(`expected two pieces with a space between them, got '${text}' at ${merge}`);
  return hashPair(hashRange(text, 0, space), hashRange(text, space + 1, text.length));
}

const badMerges = (problem: string): AppError => new AppError("bad_file", `metadata '${MERGES_KEY}': ${problem}`);

const hashPair = (left: number, right: number): number => Math.imul(Math.imul(left, 0x9e3779b1) ^ right, 0x85ebca6b);

/** Makes the encoder. Bytes without a piece are dropped, as in llama.cpp. */
export function makeByteBpe(index: PieceIndex, merges: Merges, rule: PreTokenizer): Encode {
  const characters = byteCharacters();
  const symbolOf = Int32Array.from(characters, (character) => findPiece(index, character));
  const longest = index.powers.length - 1;
  const scratch = makeMergeScratch();
  const utf8 = new TextEncoder();
  let bytes = new Uint8Array(256);
  let symbols = new Int32Array(256);

  const encodeWord: Encode = (word, out) => {
    if (bytes.length < word.length * 3) {
      bytes = new Uint8Array(word.length * 6);
      symbols = new Int32Array(bytes.length);
    }
    const length = utf8.encodeInto(word, bytes).written;
    if (rule.ignoreMerges && length <= longest) {
      let spelled = "";
      for (let i = 0; i < length; i++) spelled += characters[bytes[i]!]!;
      const whole = findPiece(index, spelled);
      if (whole >= 0) return pushId(out, whole);
    }
    for (let start = 0; start < length; start += MAX_SYMBOLS) {
      const part = Math.min(MAX_SYMBOLS, length - start);
      for (let i = 0; i < part; i++) symbols[i] = symbolOf[bytes[start + i]!]!;
      const count = mergeSymbols(merges, symbols, part, scratch);
      let kept = 0;
      for (let i = 0; i < count; i++) if (symbols[i]! >= 0) symbols[kept++] = symbols[i]!;
      pushIds(out, symbols, 0, kept);
    }
  };
  const split = makeSplit(rule);
  const encodeWords = makeWordsEncoder(encodeWord);
  return (text, out) => encodeWords(split(text), out);
}
