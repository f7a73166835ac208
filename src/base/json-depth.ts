/** How large a JSON text is in ways that its length does not tell, known before it is parsed. */

export interface JsonLimits {
  /** Levels of brackets, so that code which walks over the value may recurse. */
  readonly depth: number;
  /** Keys and other texts: each one that differs costs a microsecond to parse. */
  readonly texts: number;
  /** Values of all kinds. */
  readonly values: number;
}

/** Whether brackets nest deeper than `max`, whether or not the text is JSON. */
export const nestsDeeper = (text: string, max: number): boolean =>
  jsonExcess(text, { depth: max, texts: Infinity, values: Infinity }) === "depth";

/** The first limit that a text goes over, whether or not it is JSON; undefined: none. */
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

/** Index of the quote that closes the one at `start`, or of the end. */
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
