/**
 * Prompt-lookup (n-gram) drafting: drafts the tokens that followed an earlier occurrence of the last tokens. Most
 * drafts are accepted when a text is edited, quoted or repeated.
 */

/** Minimum length of a match. */
const GRAM = 3;
/** Number of earlier occurrences that are compared, the latest first. */
const PLACES_MAX = 16;
/** Matches are compared up to this length. */
export const MATCH_MAX = 32;
const BUCKETS = 2 ** 15;

export interface LookupDraft {
  /** At least one. */
  readonly tokens: Int32Array;
  /** Length of the match with the end of the sequence: 3 … MATCH_MAX. */
  readonly match: number;
}

export interface Lookup {
  /** @param tokens keys of a sequence, which has grown or was cut since the last call */
  draft(tokens: readonly number[], most: number): LookupDraft | undefined;
}

export function makeLookup(): Lookup {
  const latest = new Int32Array(BUCKETS); // by hash of a gram: the end of its last occurrence; 0: none
  let before = new Int32Array(1024); // by end: the previous end with the same hash
  let end = GRAM; // grams that end before this index are in the tables

  const learn = (tokens: readonly number[]): void => {
    if (tokens.length < end) {
      latest.fill(0);
      end = GRAM;
    }
    if (tokens.length > before.length) {
      const longer = new Int32Array(2 * tokens.length);
      longer.set(before);
      before = longer;
    }
    for (; end < tokens.length; end++) {
      const bucket = bucketOf(tokens, end);
      before[end] = latest[bucket]!;
      latest[bucket] = end;
    }
  };
  return {
    draft(tokens, most) {
      const { length } = tokens;
      if (length <= GRAM || most < 1) return undefined;
      learn(tokens);
      let [best, match] = [0, GRAM - 1];
      let place = latest[bucketOf(tokens, length)]!;
      for (let i = 0; i < PLACES_MAX && place > 0 && match < MATCH_MAX; i++, place = before[place]!) {
        let same = 0;
        while (same < Math.min(place, MATCH_MAX) && tokens[place - 1 - same] === tokens[length - 1 - same]) same++;
        if (same > match) [best, match] = [place, same];
      }
      if (best === 0) return undefined;
      const found = tokens.slice(best, best + most);
      const media = found.findIndex((token) => token < 0);
      const ids = Int32Array.from(media < 0 ? found : found.slice(0, media));
      return ids.length > 0 ? { tokens: ids, match } : undefined;
    },
  };
}

/** Hash of the gram that ends before `end`. */
function bucketOf(tokens: readonly number[], end: number): number {
  let hash = 0;
  for (let i = end - GRAM; i < end; i++) hash = Math.imul(hash ^ tokens[i]!, 0x9e3779b1) ^ (hash >>> 15);
  return (hash >>> 17) & (BUCKETS - 1);
}
