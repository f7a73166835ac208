/**
 * Text in double quotes as Go's `%q` prints it: clients match on messages that were first written that way.
 * Rules: strconv.Quote in Go's standard library.
 */

const NAMED: Readonly<Record<string, string>> = {
  '"': '\\"',
  "\\": "\\\\",
  "\x07": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
};

/** Characters that are escaped: controls, format characters, line separators, surrogates. */
const SPECIAL = /["\\]|[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu;

export function quoteGo(text: string): string {
  return `"${text.replace(SPECIAL, escapeOf)}"`;
}

function escapeOf(char: string): string {
  const named = NAMED[char];
  if (named) return named;
  const code = char.codePointAt(0) ?? 0;
  if (code < 0x80) return `\\x${code.toString(16).padStart(2, "0")}`;
  if (code < 0x10000) return `\\u${code.toString(16).padStart(4, "0")}`;
  return `\\U${code.toString(16).padStart(8, "0")}`;
}
