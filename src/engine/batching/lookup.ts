/**
 * Guesses what a sequence says next by what stood behind its last tokens where they stood before. Right more often than
 * not where a text is edited, quoted or repeated.
 */

/** As many tokens must have stood there before. */
const GRAM = 3;
/** Earlier places that are looked at, the latest first. */
const PLACES_MAX = 16;
/** Tokens in common beyond which a place is as good as any. */
export const MATCH_MAX = 32;
const BUCKETS = 2 ** 15;

export interface Guess {
  /** At least one. */
  readonly tokens: Int32Array;
  /** How many tokens before it are the same as at the end of the sequence: 3 … MATCH_MAX. */
  readonly match: number;
}

export interface Lookup {
  /** @param tokens keys of a sequence, which has grown since the last call, or was cut */
  guess(tokens: readonly number[], most: number): Guess | undefined;
}

export function makeLookup(): Lookup {
  const latest = new Int32Array(BUCKETS); // by hash of a gram, where the last one ended; 0: none
  let before = new Int32Array(1024); // of each end, that of the gram before with the same hash
  let end = GRAM; // grams that end before this are known

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
    guess(tokens, most) {
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

/** Of the gram that ends before `end`. */
function bucketOf(tokens: readonly number[], end: number): number {
  let hash = 0;
  for (let i = end - GRAM; i < end; i++) hash = Math.imul(hash ^ tokens[i]!, 0x9e3779b1) ^ (hash >>> 15);
  return (hash >>> 17) & (BUCKETS - 1);
}
