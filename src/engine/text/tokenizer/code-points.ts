/**
 * Tokenizers whose pieces are plain text with `▁` for a space: characters are symbols, merges join them, and a
 * character without a piece becomes its UTF-8 bytes, as pieces `<0xNN>`. SentencePiece's BPE and Gemma 4 use this.
 * Ported from `llm_tokenizer_spm_session` and `llm_tokenizer_bpe_session` in llama-vocab.cpp.
 */
import { pushId } from "./id-list.ts";
import { makeMergeScratch, MAX_SYMBOLS, mergeSymbols, type Merges } from "./merge.ts";
import { findJoined, findPiece, findRange, hashRange, indexPieces, type PieceIndex } from "./piece-index.ts";
import { makeSplit, type PreTokenizer } from "./pretokenize.ts";
import { PIECES_KEY, type Vocabulary } from "./vocabulary.ts";
import { makeWordsEncoder, type Encode } from "./word-cache.ts";

export const SPACE = "▁"; // U+2581

/** Makes the encoder of a SentencePiece model: the piece with the highest score is joined first. */
export function makeSentencePiece(vocabulary: Vocabulary, scores: Float32Array): Encode {
  const make = (): Encode => {
    const index = withCharacters(vocabulary);
    const merges = makeScoreMerges(index, scores);
    const encodeWords = makeWordsEncoder(makeWordEncoder({ index, merges, vocabulary }));
    const words = wordPattern(vocabulary.pieces);
    return (text, out) => encodeWords(text.replaceAll(" ", SPACE).match(words) ?? [], out);
  };
  let encode: Encode | undefined; // made at first use: sorting 256k scores takes 60 ms
  return (text, out) => (encode ??= make())(text, out);
}

/** Makes the encoder of BPE over text (Gemma 4). */
export function makeTextBpe(vocabulary: Vocabulary, merges: Merges, rule: PreTokenizer): Encode {
  const { index } = vocabulary;
  const encodeMerged = makeWordEncoder({ index, merges, vocabulary });
  const split = makeSplit(rule);
  const encodeWords = makeWordsEncoder((word, out) => {
    const lines = word.startsWith("\n") ? findPiece(index, word) : -1; // merges do not produce runs of line feeds
    if (lines >= 0) pushId(out, lines);
    else encodeMerged(word, out);
  });
  const words = wordPattern(vocabulary.pieces);
  return (text, out) => {
    for (const line of split(text.replaceAll(" ", SPACE))) encodeWords(line.match(words) ?? [], out);
  };
}

/**
 * Splits text before each run of `▁`, which changes no id, because nothing merges across such a split; but not after a
 * character that some piece has before a `▁` (Gemma 4: `>▁</`).
 */
function wordPattern(pieces: readonly string[]): RegExp {
  const joiners = new Set<string>();
  for (const piece of pieces) {
    if (piece.lastIndexOf(SPACE) <= 0) continue;
    for (const { 0: joiner } of piece.matchAll(/[^▁](?=▁)/gu)) joiners.add(joiner);
  }
  const escaped = Array.from(joiners, (joiner) => `\\u{${joiner.codePointAt(0)!.toString(16)}}`).join("");
  return new RegExp(escaped === "" ? "▁*[^▁]+|▁+" : `▁*[^▁]+(?:(?<=[${escaped}])▁+[^▁]*)*|▁+`, "gu");
}

/**
 * The pieces' index, plus characters that occur only inside pieces: two of these may still be joined. Their ids follow
 * the vocabulary's.
 */
function withCharacters({ pieces, index }: Vocabulary): PieceIndex {
  const seen = new Set<number>();
  const missing: string[] = [];
  for (const piece of pieces) {
    for (const character of piece) {
      const codePoint = character.codePointAt(0)!;
      if (seen.has(codePoint)) continue;
      seen.add(codePoint);
      if (findPiece(index, character) < 0) missing.push(character);
    }
  }
  return missing.length === 0 ? index : indexPieces([...pieces, ...missing], PIECES_KEY);
}

/**
 * Two symbols merge if a piece consists of them; equal scores have equal ranks, so that the leftmost pair merges first.
 */
function makeScoreMerges(index: PieceIndex, scores: Float32Array): Merges {
  const order = Array.from(scores.keys()).sort((a, b) => scores[b]! - scores[a]!);
  const rank = new Int32Array(index.pieces.length);
  order.forEach((id, at) => {
    const before = order[at - 1];
    rank[id] = before !== undefined && scores[before] === scores[id] ? rank[before]! : at;
  });
  return {
    find: (left, right) => (left < 0 || right < 0 ? -1 : findJoined(index, left, right)),
    rank,
    result: Int32Array.from(index.pieces.keys()),
  };
}

interface Parts {
  readonly index: PieceIndex;
  readonly merges: Merges;
  readonly vocabulary: Vocabulary;
}

/** Encodes a word: its characters, merged; those without a piece become bytes. */
function makeWordEncoder({ index, merges, vocabulary: { pieces, unknown = -1 } }: Parts): Encode {
  const byteIds = Int32Array.from({ length: 256 }, (_, byte) => {
    const id = findPiece(index, `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);
    return id < 0 && byte < 128 ? findPiece(index, String.fromCharCode(byte)) : id;
  });
  const utf8 = new TextEncoder();
  const scratch = makeMergeScratch();
  let symbols = new Int32Array(256);
  const pushBytes = (character: string, out: Parameters<Encode>[1]): void => {
    for (const byte of utf8.encode(character)) {
      const id = byteIds[byte]! < 0 ? unknown : byteIds[byte]!;
      if (id >= 0 && id < pieces.length) pushId(out, id);
    }
  };
  return (word, out) => {
    if (symbols.length < word.length) symbols = new Int32Array(2 * word.length);
    for (let at = 0; at < word.length;) {
      let length = 0;
      for (; at < word.length && length < MAX_SYMBOLS; length++) {
        const codePoint = word.codePointAt(at)!;
        const end = at + (codePoint > 0xffff ? 2 : 1);
        const id = findRange(index, word, at, end, hashRange(word, at, end));
        symbols[length] = id < 0 ? -1 - codePoint : id;
        at = end;
      }
      const count = mergeSymbols(merges, symbols, length, scratch);
      for (let i = 0; i < count; i++) {
        const symbol = symbols[i]!;
        if (symbol < 0) pushBytes(String.fromCodePoint(-1 - symbol), out);
        else if (symbol < pieces.length) pushId(out, symbol);
        else pushBytes(index.pieces[symbol]!, out);
      }
    }
  };
}
