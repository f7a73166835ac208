/** Caches ids of whole texts between special tokens: every turn of a chat repeats all earlier messages. */
import { pushIds } from "./id-list.ts";
import type { Encode } from "./word-cache.ts";

/** Longer texts are not cached. */
const MAX_FRAGMENT_CHARS = 65_536;
/** Total size of cached texts at which the cache is cleared. Texts and ids then take about 6 MB. */
const MAX_CHARS = 2 ** 20;

/** Encodes texts and caches each. */
export function makeFragmentEncoder(encode: Encode): Encode {
  const known = new Map<string, Int32Array>();
  let chars = 0;
  return (text, out) => {
    const ids = known.get(text);
    if (ids) return pushIds(out, ids, 0, ids.length);
    const before = out.length;
    encode(text, out);
    if (text.length > MAX_FRAGMENT_CHARS) return;
    if (chars + text.length > MAX_CHARS) {
      known.clear();
      chars = 0;
    }
    known.set(text, out.ids.slice(before, out.length));
    chars += text.length;
  };
}
