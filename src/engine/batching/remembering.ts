/** What was made of lists of texts lately. */

/** Lists that are remembered: at the limit all are forgotten. */
const KEPT_MAX = 16;
/** Longer lists, as JSON, are seldom, and what is made of them may be large: it is made each time. */
const CHARS_MAX = 1024;

/** A function that makes something of a list of texts, once for each of the last few lists. What it makes is shared. */
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
