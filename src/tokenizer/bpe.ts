/**
 * Byte-level BPE: a word's UTF-8 bytes are symbols, and the file's list of merges joins them, the earliest in the list
 * first. Ported from `llm_tokenizer_bpe_session` in llama-vocab.cpp.
 */
import { AppError } from "../base/errors.ts";
import { byteCharacters } from "./byte-alphabet.ts";
import { pushId, pushIds } from "./id-list.ts";
import { makeMergeScratch, MAX_SYMBOLS, mergeSymbols, type Merges } from "./merge.ts";
import { findJoined, findPiece, findRange, hashRange, MAX_PROBES, slotCount, type PieceIndex } from "./piece-index.ts";
import { makeSplit, type PreTokenizer } from "./pretokenize.ts";
import { makeWordsEncoder, type Encode } from "./word-cache.ts";

/** Most merges; the longest published list has 514,906. */
const MAX_MERGES = 2 ** 22;
export const MERGES_KEY = "tokenizer.ggml.merges";

/**
 * Reads the list of merges, each "left right". Throws `bad_file` naming an entry of another form. Merges of pieces that
 * the vocabulary lacks are passed over, as files in use have some. Where a pair is there twice, the first counts.
 */
export function makePairMerges(index: PieceIndex, merges: readonly string[]): Merges {
  if (merges.length > MAX_MERGES) {
    throw new AppError(
      "bad_file",
      `metadata '${MERGES_KEY}': expected at most ${MAX_MERGES} merges, got ${merges.length}`,
    );
  }
  const slots = new Int32Array(4 * slotCount(merges.length)).fill(-1); // (slots, 4): left, right, merge, unused
  const mask = slots.length - 4;
  const rank = new Int32Array(merges.length);
  const result = new Int32Array(merges.length);
  const slotOf = (left: number, right: number): number => {
    let at = scatterPair(left, right) & mask;
    for (let probes = 0; slots[at] !== -1 && (slots[at] !== left || slots[at + 1] !== right); at = (at + 4) & mask) {
      if (++probes > MAX_PROBES) throw badMerges(`more than ${MAX_PROBES} merges share a hash`);
    }
    return at;
  };
  for (let merge = 0; merge < merges.length; merge++) {
    const text = merges[merge]!;
    const space = text.indexOf(" ", 1);
    const left = space < 0 ? -1 : findRange(index, text, 0, space, hashRange(text, 0, space));
    const right =
      space < 0 ? -1 : findRange(index, text, space + 1, text.length, hashRange(text, space + 1, text.length));
    const joined = left < 0 || right < 0 ? -1 : findJoined(index, left, right);
    if (space < 0) throw badMerges(`expected two pieces with a space between them, got '${text}' at ${merge}`);
    if (joined < 0) continue; // pieces that are not in the vocabulary never meet
    rank[merge] = merge;
    result[merge] = joined;
    const at = slotOf(left, right);
    if (slots[at] !== -1) continue;
    slots[at] = left;
    slots[at + 1] = right;
    slots[at + 2] = merge;
  }
  const find = (left: number, right: number): number => {
    if (left < 0 || right < 0) return -1;
    let at = scatterPair(left, right) & mask;
    while (slots[at] !== -1) {
      if (slots[at] === left && slots[at + 1] === right) return slots[at + 2]!;
      at = (at + 4) & mask;
    }
    return -1;
  };
  return { find, rank, result };
}

const badMerges = (problem: string): AppError => new AppError("bad_file", `metadata '${MERGES_KEY}': ${problem}`);

/** Spreads a pair of ids over slots of four numbers. */
function scatterPair(left: number, right: number): number {
  const mixed = Math.imul(Math.imul(left, 0x9e3779b1) ^ right, 0x85ebca6b);
  return (mixed ^ (mixed >>> 15)) << 2;
}

/** Makes the encoder. A byte that no piece stands for is left out, as llama.cpp does. */
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
