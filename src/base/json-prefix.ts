/**
 * JSON that was cut anywhere: as much of it as was written. Half a string is kept, half a number, word or name is not.
 * Parentheses count as brackets and apostrophes as quotes, for calls written as Python.
 */
import { nestsDeeper } from "./json-depth.ts";

const CLOSING: Readonly<Record<string, string>> = { "{": "}", "[": "]", "(": ")" };
const DEPTH_MAX = 1000;

export interface Closed {
  /** What was written, with what closes it. */
  readonly text: string;
  /** Characters up to the end of the first value; undefined: the text was cut before that. */
  readonly length?: number;
  /** What was written and is not kept. */
  readonly rest: string;
  /** The same with something more where it was cut, to tell what that place belongs to; undefined inside a string. */
  readonly more?: string;
  /** Where the brackets stand that are still open. */
  readonly open: readonly number[];
}

/** Closes the value that begins a text with a bracket. Anything may stand between the brackets; nothing is checked. */
export function closePrefix(text: string): Closed {
  const open: string[] = [];
  const places: number[] = [];
  let [isName, sureLength] = [false, 0]; // up to there it is enough to close what is open
  for (let at = 0; at < text.length; at++) {
    const char = text[at]!;
    if (char === '"' || char === "'") {
      const end = endOfString(text, at);
      const isValue = !isName || open.at(-1) !== "{";
      if (end.isCut && isValue)
        return { text: text.slice(0, end.at) + char + closing(open), rest: text.slice(end.at), open: places };
      if (end.isCut) break;
      at = end.at - 1;
      if (isValue) sureLength = end.at;
    } else if (CLOSING[char] !== undefined) {
      open.push(char);
      places.push(at);
      [isName, sureLength] = [true, at + 1];
    } else if (char === "}" || char === "]" || char === ")") {
      open.pop();
      places.pop();
      sureLength = at + 1;
      if (open.length === 0) return { text: text.slice(0, sureLength), length: sureLength, rest: "", open: [] };
    } else if (char === ",") [isName, sureLength] = [true, at];
    else if (char === ":") isName = false;
  }
  const sure = text.slice(0, sureLength);
  const comma = /[[{(]\s*$/.test(sure) ? "" : ",";
  const more = sure + comma + (open.at(-1) === "{" ? '"more":0' : "0") + closing(open);
  return { text: sure + closing(open), rest: text.slice(sureLength), more, open: places };
}

const closing = (open: readonly string[]): string => open.reduce((after, bracket) => CLOSING[bracket] + after, "");

/** Behind the closing quote, or as far as the string is whole. */
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

/** What JSON may have behind the last thing that is sure: a name and a colon, half of one, or half a number or word. */
const UNSURE = /^[\s,]*(?:"(?:[^"\\]|\\.)*(?:\\|"\s*:?\s*)?)?[-+.\w]*\s*$|^\\/s;

/** The fields of an object that was written up to some place; undefined where the text is not the start of one. */
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
