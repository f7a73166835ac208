/**
 * Reads request bodies as Go's encoding/json does: only the first value counts, and errors have Go's texts, which
 * clients know (scanner.go). The engine's parser does the work; ours only finds the end of the first value, or the
 * error.
 */
import { AppError, jsonExcess, type JsonLimits, quoteGo } from "../../base/index.ts";

/** Beyond any client's needs, and low enough not to block the event loop for seconds. */
const LIMITS: JsonLimits = {
  depth: 1000, // schemas nest tens of levels; every walk over a body may recurse this deep
  texts: 100_000, // the longest conversations of agents have some ten thousand
  values: 2_000_000, // a context of a million tokens is an array of a million numbers
};

interface Scan {
  readonly text: string;
  at: number;
}

/** The first JSON value of a text. Throws `bad_request`, and `too_large` for a value with too many parts. */
export function parseFirstJson(text: string): unknown {
  const excess = jsonExcess(text, LIMITS);
  if (excess === "depth") throw new AppError("bad_request", "exceeded max depth");
  if (excess !== undefined) {
    const what = excess === "texts" ? "keys and texts" : "values";
    throw new AppError("too_large", `request body: expected at most ${LIMITS[excess]} ${what}, got more`);
  }
  try {
    return JSON.parse(text);
  } catch {
    return JSON.parse(text.slice(0, endOfFirstValue(text)));
  }
}

/** Index after the first value. Throws `bad_request` at the first invalid character. */
function endOfFirstValue(text: string): number {
  const scan: Scan = { text, at: 0 };
  const open: ("}" | "]")[] = [];
  for (;;) {
    const opened = scanOpening(scan);
    if (opened) open.push(opened);
    if (opened && !closesAtOnce(scan, opened)) continue;
    if (opened) open.pop();
    while (open.length > 0 && !scanSeparator(scan, open)) continue;
    if (open.length === 0) return scan.at;
  }
}

/** Reads a whole scalar, or the opening of an object or array; returns the closing character of that. */
function scanOpening(scan: Scan): "}" | "]" | undefined {
  skipSpace(scan);
  const char = scan.text[scan.at];
  switch (char) {
    case "{":
      scan.at++;
      return "}";
    case "[":
      scan.at++;
      return "]";
    case '"':
      scanString(scan);
      return undefined;
    case "t":
      scanWord(scan, "true");
      return undefined;
    case "f":
      scanWord(scan, "false");
      return undefined;
    case "n":
      scanWord(scan, "null");
      return undefined;
    default:
      if (char !== undefined && /[-0-9]/.test(char)) scanNumber(scan);
      else throw unexpected(scan, "looking for beginning of value");
      return undefined;
  }
}

/** True if the object or array just opened is empty; else reads an object's first key. */
function closesAtOnce(scan: Scan, closer: "}" | "]"): boolean {
  skipSpace(scan);
  if (scan.text[scan.at] === closer) {
    scan.at++;
    return true;
  }
  if (closer === "}") scanKey(scan);
  return false;
}

/** After a value: true at a comma (also reads an object's next key), false if one level closes. */
function scanSeparator(scan: Scan, open: ("}" | "]")[]): boolean {
  skipSpace(scan);
  const closer = open.at(-1);
  const char = scan.text[scan.at];
  if (char === ",") {
    scan.at++;
    if (closer === "}") scanKey(scan);
    return true;
  }
  if (char !== closer) throw unexpected(scan, closer === "}" ? "after object key:value pair" : "after array element");
  scan.at++;
  open.pop();
  return false;
}

function scanKey(scan: Scan): void {
  skipSpace(scan);
  if (scan.text[scan.at] !== '"') throw unexpected(scan, "looking for beginning of object key string");
  scanString(scan);
  skipSpace(scan);
  if (scan.text[scan.at] !== ":") throw unexpected(scan, "after object key");
  scan.at++;
}

function scanString(scan: Scan): void {
  scan.at++;
  for (;;) {
    const code = scan.text.charCodeAt(scan.at); // NaN at the end
    if (code === 0x22) break;
    if (!(code >= 0x20)) throw unexpected(scan, "in string literal");
    scan.at++;
    if (code === 0x5c) scanEscape(scan);
  }
  scan.at++;
}

function scanEscape(scan: Scan): void {
  const char = scan.text[scan.at];
  if (char === undefined || !'"\\/bfnrtu'.includes(char)) throw unexpected(scan, "in string escape code");
  scan.at++;
  for (let digits = char === "u" ? 4 : 0; digits > 0; digits--) {
    if (!/[0-9a-fA-F]/.test(scan.text[scan.at] ?? "")) throw unexpected(scan, "in \\u hexadecimal character escape");
    scan.at++;
  }
}

function scanNumber(scan: Scan): void {
  if (scan.text[scan.at] === "-") scan.at++;
  if (scan.text[scan.at] === "0") scan.at++;
  else scanDigits(scan, "in numeric literal");
  if (scan.text[scan.at] === ".") {
    scan.at++;
    scanDigits(scan, "after decimal point in numeric literal");
  }
  if (/[eE]/.test(scan.text[scan.at] ?? "")) {
    scan.at++;
    if (/[-+]/.test(scan.text[scan.at] ?? "")) scan.at++;
    scanDigits(scan, "in exponent of numeric literal");
  }
}

function scanDigits(scan: Scan, context: string): void {
  if (!/[0-9]/.test(scan.text[scan.at] ?? "")) throw unexpected(scan, context);
  skip(scan, /[0-9]*/y);
}

function scanWord(scan: Scan, word: string): void {
  for (const char of word) {
    if (scan.text[scan.at] !== char) throw unexpected(scan, `in literal ${word} (expecting ${quoteChar(char)})`);
    scan.at++;
  }
}

const skipSpace = (scan: Scan): void => skip(scan, /[ \t\r\n]*/y);

/** @param run a sticky pattern, which may match nothing; takes linear time */
function skip(scan: Scan, run: RegExp): void {
  run.lastIndex = scan.at;
  run.test(scan.text);
  scan.at = run.lastIndex;
}

function unexpected({ text, at }: Scan, context: string): AppError {
  const code = text.codePointAt(at);
  if (code === undefined) return new AppError("bad_request", "unexpected EOF");
  const [byte = 0] = new TextEncoder().encode(String.fromCodePoint(code)); // Go reports bytes
  return new AppError("bad_request", `invalid character ${quoteChar(String.fromCharCode(byte))} ${context}`);
}

/** A character in scanner.go's format: in single quotes, with Go's escapes. */
function quoteChar(char: string): string {
  if (char === "'") return `'\\''`;
  if (char === '"') return `'"'`;
  return `'${quoteGo(char).slice(1, -1)}'`;
}
