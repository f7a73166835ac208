/** Caches ids of words: most of a text consists of few different words. */
import { makeIdList, pushIds, type IdList } from "./id-list.ts";

export type Encode = (text: string, out: IdList) => void;

/** Longer words are rare and not cached. */
const MAX_WORD_LENGTH = 64;
/** Number of words at which the cache is cleared. 64 k words take about 8 MB. */
const MAX_WORDS = 65_536;
/** A word of MAX_WORD_LENGTH has fewer ids, because a UTF-16 unit has at most three bytes. */
const IDS_RANGE = 256;

/** Encodes a list of words and caches each. */
export function makeWordsEncoder(encodeWord: Encode): (words: readonly string[], out: IdList) => void {
  const known = new Map<string, number>(); // by word: the position and the number of its ids, start · IDS_RANGE + count
  const store = makeIdList(MAX_WORDS);
  return (words, out) => {
    for (const word of words) {
      const at = known.get(word);
      if (at !== undefined) {
        const start = Math.floor(at / IDS_RANGE);
        pushIds(out, store.ids, start, start + (at % IDS_RANGE));
        continue;
      }
      const before = out.length;
      encodeWord(word, out);
      const count = out.length - before;
      if (word.length > MAX_WORD_LENGTH || count >= IDS_RANGE) continue;
      if (known.size === MAX_WORDS) {
        known.clear();
        store.length = 0;
      }
      known.set(word, store.length * IDS_RANGE + count);
      pushIds(store, out.ids, before, out.length);
    }
  };
}
