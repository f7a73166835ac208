/** A small cache of results for lists of texts. */

/** Number of cached lists: when reached, the cache is cleared. */
const KEPT_MAX = 16;
/** Longer lists, as JSON, are rare, and their results may be large: they are not cached. */
const CHARS_MAX = 1024;

/** Memoizes a function of a list of texts, for the last few lists. Results are shared. */
export function remembering<T>(make: (texts: readonly string[]) => T): (texts: readonly string[]) => T {
  const known = new Map<string, T>();
  return (texts) => {
    const key = JSON.stringify(texts);
    if (key.length > CHARS_MAX) return make(texts);
    const found = known.get(key);
    if (found !== undefined) return found;
    const made = make(texts);
    if (known.size === KEPT_MAX) known.clear();
    known.set(key, made);
    return made;
  };
}
