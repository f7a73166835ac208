/** Limits on a JSON text beyond its length, checked before it is parsed. */

export interface JsonLimits {
  /** Levels of brackets: code that walks the value recurses. */
  readonly depth: number;
  /** Keys and other texts: each distinct one costs a microsecond to parse. */
  readonly texts: number;
  /** Values of all kinds. */
  readonly values: number;
}

/** Returns whether brackets nest deeper than `max`; the text may be invalid JSON. */
export const nestsDeeper = (text: string, max: number): boolean =>
  jsonExcess(text, { depth: max, texts: Infinity, values: Infinity }) === "depth";

/** The first limit that a text exceeds; the text may be invalid JSON. Undefined: it is within all limits. */
export function jsonExcess(text: string, limits: JsonLimits): keyof JsonLimits | undefined {
  let depth = 0;
  let texts = 0;
  let values = 1;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x22) {
      i = endOfQuotes(text, i);
      if (++texts > limits.texts) return "texts";
    } else if (code === 0x2c) {
      if (++values > limits.values) return "values";
    } else if (code === 0x5b || code === 0x7b) {
      values++;
      if (++depth > limits.depth) return "depth";
    } else if (code === 0x5d || code === 0x7d) depth--;
  }
  return undefined;
}

/** Index of the quote that closes the one at `start`, or the text's length. */
function endOfQuotes(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end >= 0 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end < 0 ? text.length : end;
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0;
  while (text[at - 1 - backslashes] === "\\") backslashes++;
  return backslashes % 2 === 1;
}
