/**
 * Completes JSON that was cut at any place. A partial string is kept; a partial number, word or key is dropped. For
 * calls in Python syntax, parentheses count as brackets and apostrophes as quotes.
 */
import { nestsDeeper } from "../../base/index.ts";

const CLOSING: Readonly<Record<string, string>> = { "{": "}", "[": "]", "(": ")" };
const DEPTH_MAX = 1000;

export interface Closed {
  /** The value with the missing closing brackets and quote. */
  readonly text: string;
  /** Length of the first value; undefined: the text was cut within it. */
  readonly length?: number;
  /** The dropped end of the input. */
  readonly rest: string;
  /** `text` with one more entry at the cut, which shows which value was cut; undefined inside a string. */
  readonly more?: string;
  /** Positions of unclosed brackets. */
  readonly open: readonly number[];
}

/** Completes the value at the start of a text, which must be a bracket. Does not check the content of brackets. */
export function closePrefix(text: string): Closed {
  const open: string[] = [];
  const positions: number[] = [];
  let [isName, sureLength] = [false, 0]; // the text up to there needs only closing brackets
  for (let at = 0; at < text.length; at++) {
    const char = text[at]!;
    if (char === '"' || char === "'") {
      const end = endOfString(text, at);
      const isValue = !isName || open.at(-1) !== "{";
      if (end.isCut && isValue)
        return { text: text.slice(0, end.at) + char + closing(open), rest: text.slice(end.at), open: positions };
      if (end.isCut) break;
      at = end.at - 1;
      if (isValue) sureLength = end.at;
    } else if (CLOSING[char] !== undefined) {
      open.push(char);
      positions.push(at);
      [isName, sureLength] = [true, at + 1];
    } else if (char === "}" || char === "]" || char === ")") {
      open.pop();
      positions.pop();
      sureLength = at + 1;
      if (open.length === 0) return { text: text.slice(0, sureLength), length: sureLength, rest: "", open: [] };
    } else if (char === ",") [isName, sureLength] = [true, at];
    else if (char === ":") isName = false;
  }
  const sure = text.slice(0, sureLength);
  const comma = /[[{(]\s*$/.test(sure) ? "" : ",";
  const more = sure + comma + (open.at(-1) === "{" ? '"more":0' : "0") + closing(open);
  return { text: sure + closing(open), rest: text.slice(sureLength), more, open: positions };
}

const closing = (open: readonly string[]): string => open.reduce((after, bracket) => CLOSING[bracket] + after, "");

/** The position after the closing quote, or after the last complete character. */
function endOfString(text: string, start: number): { readonly at: number; readonly isCut: boolean } {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === text[start]) return { at: at + 1, isCut: false };
    if (text[at] !== "\\") continue;
    const length = text[at + 1] === "u" ? 6 : 2;
    if (at + length > text.length) return { at, isCut: true };
    at += length - 1;
  }
  return { at: text.length, isCut: true };
}

/** Valid rests: a key with or without a colon, a partial key, or a partial number or word. */
const UNSURE = /^[\s,]*(?:"(?:[^"\\]|\\.)*(?:\\|"\s*:?\s*)?)?[-+.\w]*\s*$|^\\/s;

/** The fields of a cut object; undefined if the text is not the start of an object. */
export function fieldsOfPrefix(text: string): Record<string, unknown> | undefined {
  const start = text.trimStart();
  if (!start.startsWith("{") || nestsDeeper(start, DEPTH_MAX)) return undefined;
  const { text: closed, rest } = closePrefix(start);
  if (!UNSURE.test(rest)) return undefined;
  try {
    return JSON.parse(closed) as Record<string, unknown>; // it begins with a brace
  } catch {
    return undefined;
  }
}
