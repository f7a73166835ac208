/**
 * WordPiece (BERT): normalises text, splits it into words, and each word into the longest pieces that spell it;
 * otherwise the whole word is unknown. GGUF stores the start of a word as `▁`, and continuations without BERT's `##`.
 * Ported from `llm_tokenizer_wpm_session` in llama-vocab.cpp, with its approximation of NFD.
 */
import { pushId } from "./id-list.ts";
import { HAN_WORD_PIECE } from "./letters.ts";
import { extendHash, findRange } from "./piece-index.ts";
import type { Vocabulary } from "./vocabulary.ts";
import { makeWordsEncoder, type Encode } from "./word-cache.ts";

interface Normalizer {
  readonly lowercase: boolean;
  readonly stripAccents: boolean;
}

const ALONE = `\\p{P}$+<=>\\^\`\\|~${HAN_WORD_PIECE}`; // characters that are words of their own

export function makeWordPiece({ index, unknown = -1 }: Vocabulary, normalizer: Normalizer): Encode {
  const longest = index.powers.length - 1;
  const hashes = new Int32Array(longest + 1);
  const encodeWords = makeWordsEncoder((bare, out) => {
    const word = `▁${bare}`;
    const before = out.length;
    for (let start = 0; start < word.length;) {
      const furthest = Math.min(longest, word.length - start);
      for (let i = 0; i < furthest; i++) hashes[i + 1] = extendHash(hashes[i]!, word.charCodeAt(start + i));
      let length = furthest + 1;
      let id = -1;
      while (id < 0 && --length > 0) id = findRange(index, word, start, start + length, hashes[length]!);
      if (id < 0) {
        out.length = before;
        break;
      }
      pushId(out, id);
      start += length;
    }
    if (out.length === before && unknown >= 0) pushId(out, unknown);
  });
  const words = new RegExp(`[${ALONE}]|[^\\p{White_Space}${ALONE}]+`, "gu");
  return (text, out) => encodeWords(normalize(text, normalizer).match(words) ?? [], out);
}

/** Drops controls; folds accents and case per character, to the first character of its mapping. */
function normalize(text: string, { lowercase, stripAccents }: Normalizer): string {
  const visible = text.replaceAll(/(?!\p{White_Space})[\p{Cc}\p{Cf}\p{Co}\p{Cs}\uFFFD]/gu, "");
  const bare = stripAccents
    ? eachNonAscii(visible, (character) => character.normalize("NFD")).replaceAll(/\p{M}/gu, "")
    : visible;
  return lowercase ? eachNonAscii(bare, (character) => character.toLowerCase()).toLowerCase() : bare;
}

function eachNonAscii(text: string, map: (character: string) => string): string {
  return text.replaceAll(/[^\0-\x7f]/gu, (character) => String.fromCodePoint(map(character).codePointAt(0)!));
}
