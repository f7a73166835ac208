/** A small cache of results for lists of texts. */

/** Number of cached lists: when reached, the cache is cleared. */
const KEPT_MAX = 16;
/** Default limit of a list as JSON. */
const CHARS_MAX = 1024;

/**
 * Memoizes a function of a list of texts, for the last few lists. Results are shared.
 * @param options.charsMax longer lists, as JSON, are rare, and their results may be large: they are not cached
 */
export function remembering<T>(
  make: (texts: readonly string[]) => T,
  { charsMax = CHARS_MAX }: { readonly charsMax?: number } = {},
): (texts: readonly string[]) => T {
  const known = new Map<string, { readonly made: T }>();
  return (texts) => {
    const key = JSON.stringify(texts);
    if (key.length > charsMax) return make(texts);
    const found = known.get(key);
    if (found) return found.made;
    const made = make(texts);
    if (known.size === KEPT_MAX) known.clear();
    known.set(key, { made });
    return made;
  };
}
