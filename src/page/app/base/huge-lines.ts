/** Finds lines that are too long for a direction of their own: browsers take seconds to lay them out. */

const LINE_CHARS_MAX = 50_000;

/** The class of an element with such a text; "": each line has the direction of its script. */
export function hugeLines(text: string): "huge-lines" | "" {
  for (let from = 0; text.length - from > LINE_CHARS_MAX;) {
    const end = text.indexOf("\n", from);
    if (end < 0 || end - from > LINE_CHARS_MAX) return "huge-lines";
    from = end + 1;
  }
  return "";
}
