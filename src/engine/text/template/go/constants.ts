/**
 * Constants of Go templates: quoted and raw strings, characters, numbers. The syntax is Go's own (strconv.Unquote,
 * strconv.ParseInt with base 0, strconv.ParseFloat); an integer is a bigint here, a float a number. Complex numbers are
 * refused.
 */
import { AppError } from "../../../../base/index.ts";

const ESCAPES: Readonly<Record<string, number>> = { a: 7, b: 8, f: 12, n: 10, r: 13, t: 9, v: 11, "\\": 92 };
const HEX_LENGTH: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };
const INT = /^[+-]?(?:0[xX](?:_?[\da-fA-F])+|0[bB](?:_?[01])+|0[oO]?(?:_?[0-7])+|0|[1-9](?:_?\d)*)$/;
const FLOAT = /^[+-]?(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d+)?$/;
const HEX_FLOAT = /^([+-]?)0[xX]([\da-fA-F_]*)(?:\.([\da-fA-F_]*))?[pP]([+-]?\d+)$/;

const bad = (message: string): AppError => new AppError("bad_request", message);

/** The text of `"…"` or of a raw string between backquotes. */
export function unquote(quoted: string): string {
  const body = quoted.slice(1, -1);
  if (quoted.startsWith("`")) return body.replaceAll("\r", "");
  return body.includes("\\") ? unescape(body, '"') : body;
}

/** The code point of `'…'`. */
export function parseCharacter(quoted: string): bigint {
  const body = quoted.slice(1, -1);
  const simpleByte = /^\\(?:x([\da-fA-F]{2})|([0-3][0-7]{2}))$/.exec(body);
  if (simpleByte) return BigInt(parseInt(simpleByte[1] ?? simpleByte[2]!, simpleByte[1] ? 16 : 8));
  const characters = [...(body.includes("\\") ? unescape(body, "'") : body)];
  if (characters.length !== 1) throw bad(`malformed character constant: ${quoted}`);
  return BigInt(characters[0]!.codePointAt(0)!);
}

/** `\x` and octal escapes name bytes, so the text goes through UTF-8. */
function unescape(body: string, quote: string): string {
  const bytes: number[] = [];
  const encoder = new TextEncoder();
  for (let i = 0; i < body.length;) {
    if (body[i] !== "\\") {
      const next = body.indexOf("\\", i);
      const end = next < 0 ? body.length : next;
      for (const byte of encoder.encode(body.slice(i, end))) bytes.push(byte);
      i = end;
      continue;
    }
    const c = body[i + 1] ?? "";
    const hexLength = HEX_LENGTH[c];
    const digits = hexLength ? body.slice(i + 2, i + 2 + hexLength) : body.slice(i + 1, i + 4);
    if (ESCAPES[c] !== undefined || c === quote) {
      bytes.push(ESCAPES[c] ?? quote.charCodeAt(0));
      i += 2;
    } else if (hexLength && digits.length === hexLength && /^[\da-fA-F]+$/.test(digits)) {
      const code = parseInt(digits, 16);
      if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) throw bad(`invalid escape \\${c}${digits}`);
      if (c === "x") bytes.push(code);
      else for (const byte of encoder.encode(String.fromCodePoint(code))) bytes.push(byte);
      i += 2 + hexLength;
    } else if (/^[0-3][0-7]{2}$/.test(digits)) {
      bytes.push(parseInt(digits, 8));
      i += 4;
    } else {
      throw bad(`invalid escape \\${c}`);
    }
  }
  return new TextDecoder().decode(Uint8Array.from(bytes));
}

/** An int (64 bits) or, where the text has a point or an exponent, a float. */
export function parseNumber(text: string): bigint | number {
  const digits = text.replaceAll("_", "");
  if (INT.test(text)) {
    const magnitude = BigInt(digits.replace(/^[+-]/, "").replace(/^0(?=[0-7])/, "0o"));
    const value = text.startsWith("-") ? -magnitude : magnitude;
    if (BigInt.asIntN(64, value) !== value) throw bad(`${text} overflows int`);
    return value;
  }
  if (FLOAT.test(text) && /[.eE]/.test(text)) {
    const value = Number(digits);
    if (Number.isFinite(value)) return value;
  }
  const hex = HEX_FLOAT.exec(text);
  if (hex && (hex[2] || hex[3])) {
    const fraction = (hex[3] ?? "").replaceAll("_", "");
    const mantissa = parseInt(hex[2]!.replaceAll("_", "") + fraction, 16);
    const value = mantissa * 2 ** (Number(hex[4]) - 4 * fraction.length);
    if (Number.isFinite(value)) return hex[1] === "-" ? -value : value;
  }
  throw bad(`bad number syntax: ${JSON.stringify(text)}`);
}
