/**
 * WordPiece (BERT): normalises text, splits it into words, and each word into the longest pieces that spell it;
 * otherwise the whole word is unknown. GGUF stores the start of a word as `▁`, and continuations without BERT's `##`.
 *
 * Normalisation follows `BertNormalizer`, the tokenizer that these models were trained with. llama.cpp keeps only the
 * first character of a decomposition and drops vowel signs, so its ids differ in Korean and in the scripts of India, in
 * words of more than 100 characters, and around vertical tabs and form feeds.
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

/** A longer word is unknown. */
const WORD_CHARACTERS_MAX = 100;
const ALONE = `\\p{P}$+<=>\\^\`\\|~${HAN_WORD_PIECE}`; // characters that are separate words

export function makeWordPiece({ index, unknown = -1 }: Vocabulary, normalizer: Normalizer): Encode {
  const longest = index.powers.length - 1;
  const hashes = new Int32Array(longest + 1);
  const encodeWords = makeWordsEncoder((bare, out) => {
    const word = `▁${bare}`;
    const before = out.length;
    const fits = bare.length <= WORD_CHARACTERS_MAX || [...bare].length <= WORD_CHARACTERS_MAX;
    for (let start = 0; fits && start < word.length;) {
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

/**
 * Drops controls, nonspacing marks (accents) and case. Case is folded per character, so that a sigma never becomes a
 * final one.
 */
function normalize(text: string, { lowercase, stripAccents }: Normalizer): string {
  const visible = text.replaceAll(/(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}\p{Cs}\uFFFD]/gu, "");
  const bare = stripAccents ? visible.normalize("NFD").replaceAll(/\p{Mn}/gu, "") : visible;
  return lowercase ? bare.replaceAll(/[^\0-\x7f]/gu, (character) => character.toLowerCase()).toLowerCase() : bare;
}
