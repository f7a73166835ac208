/**
 * Reads GBNF, the grammar notation of llama.cpp (`grammars/README.md`), and writes it in the notation of the grammar
 * library. Errors name the line and the column.
 */
import { AppError } from "../../../base/index.ts";
import {
  ASCII,
  charCount,
  classOf,
  complement,
  literal,
  negatedClass,
  subtract,
  union,
  type CharSet,
} from "./schema/char-set.ts";

const CHARS_MAX = 2 ** 18;
const DEPTH_MAX = 64;
/** As in llama.cpp. */
const REPEAT_MAX = 2000;
/** Maximum members of a class beyond ASCII that are listed; with more, the class has all characters beyond ASCII. */
const LISTED_MAX = 512;

interface Reader {
  readonly text: string;
  at: number;
  /** References to rules, by name, with the position of the first. */
  readonly wanted: Map<string, number>;
}

/** The rules of a grammar, whose first one is `root`. Throws `bad_request`. */
export function gbnfRules(text: string): string {
  if (text.length > CHARS_MAX) {
    throw new AppError("bad_request", `grammar: expected at most ${CHARS_MAX} characters, got ${text.length}`);
  }
  const reader: Reader = { text, at: 0, wanted: new Map() };
  const rules = new Map<string, string>();
  skip(reader, true);
  while (reader.at < text.length) {
    const start = reader.at;
    const name = readName(reader) ?? fail(reader, "the name of a rule");
    if (rules.has(name)) fail(reader, `one rule '${name}'`, start);
    skip(reader, false);
    expect(reader, "::=");
    skip(reader, true);
    rules.set(name, readAlternatives(reader, 0));
    if (reader.at < text.length && text[reader.at] !== "\n") fail(reader, "a line break behind the rule");
    skip(reader, true);
  }
  for (const [name, at] of reader.wanted)
    if (!rules.has(name)) fail(reader, "the name of a rule that the grammar has", at);
  if (!rules.has("root")) throw new AppError("bad_request", "grammar: expected a rule 'root', got none");
  return ["root", ...[...rules.keys()].filter((name) => name !== "root")]
    .map((name) => `${nameOf(name)} ::= ${rules.get(name)!}\n`)
    .join("");
}

/** The library has rule names of its own, so each name gets a prefix. */
const nameOf = (name: string): string => (name === "root" ? "root" : `g_${name.replaceAll("-", "_m")}`);

/** Throws with a position. */
function fail({ text, at }: Reader, expected: string, from = at): never {
  const before = text.slice(0, from).split("\n");
  const rest = Array.from(text.slice(from, from + 20))
    .join("")
    .split("\n", 1)[0];
  const got = from >= text.length ? "the end" : rest === "" ? "the end of the line" : `'${rest}'`;
  const place = `line ${before.length}, column ${Array.from(before.at(-1)!).length + 1}`; // a split has a part
  throw new AppError("bad_request", `grammar: ${place}: expected ${expected}, got ${got}`);
}

/** Skips blanks and comments, and line breaks without a meaning. */
function skip(reader: Reader, overLines: boolean): void {
  const pattern = overLines ? /(?:[ \t\r\n]|#[^\n]*)*/y : /(?:[ \t\r]|#[^\n]*)*/y;
  pattern.lastIndex = reader.at;
  reader.at += pattern.exec(reader.text)![0].length; // the pattern also matches an empty text
}

function readName(reader: Reader): string | undefined {
  const pattern = /[a-zA-Z0-9_-]+/y;
  pattern.lastIndex = reader.at;
  const name = pattern.exec(reader.text)?.[0];
  reader.at += name?.length ?? 0;
  return name;
}

function expect(reader: Reader, token: string): void {
  if (!reader.text.startsWith(token, reader.at)) fail(reader, `'${token}'`);
  reader.at += token.length;
}

function readAlternatives(reader: Reader, depth: number): string {
  const all = [readSequence(reader, depth)];
  for (;;) {
    const before = reader.at;
    skip(reader, true); // a rule may continue in a line that begins with a bar
    if (reader.text[reader.at] !== "|") {
      if (depth === 0) reader.at = before;
      return all.length === 1 ? all[0]! : `(${all.join(" | ")})`;
    }
    reader.at++;
    skip(reader, true);
    all.push(readSequence(reader, depth));
  }
}

function readSequence(reader: Reader, depth: number): string {
  const items: string[] = [];
  for (;;) {
    const item = readItem(reader, depth);
    if (item === undefined) return items.length > 0 ? items.join(" ") : '""';
    skip(reader, false);
    items.push(readRepeat(reader, item));
    skip(reader, depth > 0);
  }
}

function readItem(reader: Reader, depth: number): string | undefined {
  const { text } = reader;
  const start = reader.at;
  switch (text[start]) {
    case '"':
      return readLiteral(reader);
    case "[":
      return readClass(reader);
    case ".":
      reader.at++;
      return negatedClass([[0, 0]]);
    case "(": {
      if (depth >= DEPTH_MAX) fail(reader, `groups nested at most ${DEPTH_MAX} deep`);
      reader.at++;
      skip(reader, true);
      const inner = readAlternatives(reader, depth + 1);
      skip(reader, true);
      expect(reader, ")");
      return `(${inner})`;
    }
    case "<":
      return fail(reader, "a literal, a class, a name or a group: single tokens are not supported");
    default: {
      const name = readName(reader);
      if (name === undefined) return undefined;
      if (!reader.wanted.has(name)) reader.wanted.set(name, start);
      return nameOf(name);
    }
  }
}

function readRepeat(reader: Reader, item: string): string {
  const { text } = reader;
  const sign = text[reader.at];
  if (sign === "*" || sign === "+" || sign === "?") {
    reader.at++;
    return `(${item})${sign}`;
  }
  if (sign !== "{") return item;
  const pattern = /\{\s*(\d{1,9})\s*(,\s*(\d{1,9})?\s*)?\}/y;
  pattern.lastIndex = reader.at;
  const found = pattern.exec(text) ?? fail(reader, "a count such as {2}, {2,} or {2,5}");
  const min = Number(found[1]);
  const max = found[2] === undefined ? min : found[3] === undefined ? Infinity : Number(found[3]);
  if (min > max) fail(reader, "a count that is not less than the one before it");
  if (min > REPEAT_MAX || (max > REPEAT_MAX && max !== Infinity)) fail(reader, `counts of at most ${REPEAT_MAX}`);
  reader.at += found[0].length;
  if (max === 0) return '""';
  return `(${item}){${min},${Number.isFinite(max) ? max : ""}}`;
}

function readLiteral(reader: Reader): string {
  const { text } = reader;
  let value = "";
  reader.at++;
  while (text[reader.at] !== '"') {
    if (reader.at >= text.length || text[reader.at] === "\n") fail(reader, "a closing quote");
    value += String.fromCodePoint(readChar(reader));
  }
  reader.at++;
  return literal(value);
}

function readClass(reader: Reader): string {
  const { text } = reader;
  reader.at++;
  const isNegated = text[reader.at] === "^";
  if (isNegated) reader.at++;
  let set: CharSet = [];
  while (text[reader.at] !== "]") {
    if (reader.at >= text.length) fail(reader, "']'");
    const start = reader.at;
    const from = readChar(reader);
    let to = from;
    if (text[reader.at] === "-" && text[reader.at + 1] !== "]") {
      reader.at++;
      to = readChar(reader);
      if (to < from) fail(reader, "a range from the lower character to the higher one", start);
    }
    set = union(set, [[from, to]]);
  }
  reader.at++;
  const wanted = isNegated ? complement(set) : set;
  if (charCount(wanted) === 0) fail(reader, "a class with a character");
  return classExpression(wanted);
}

/** The library supports classes of ASCII characters, and all characters except some of ASCII. */
function classExpression(set: CharSet): string {
  const beyond = subtract(set, ASCII);
  const ascii = subtract(set, complement(ASCII));
  if (beyond.length === 0) return classOf(ascii);
  if (charCount(beyond) > LISTED_MAX) return negatedClass(subtract(ASCII, ascii));
  const listed = beyond.flatMap(([from, to]) =>
    Array.from({ length: to - from + 1 }, (_, i) => literal(String.fromCodePoint(from + i))),
  );
  return `(${[...(ascii.length > 0 ? [classOf(ascii)] : []), ...listed].join(" | ")})`;
}

const ESCAPES: Readonly<Record<string, string>> = {
  t: "\t",
  r: "\r",
  n: "\n",
  "\\": "\\",
  '"': '"',
  "[": "[",
  "]": "]",
};
const HEX: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };

/** The code point of a character, which may be escaped. */
function readChar(reader: Reader): number {
  const { text } = reader;
  const point = text.codePointAt(reader.at)!; // callers check for the end
  if (point !== 0x5c) {
    reader.at += point > 0xffff ? 2 : 1;
    return point;
  }
  const sign = text[reader.at + 1] ?? "";
  const plain = Object.hasOwn(ESCAPES, sign) ? ESCAPES[sign] : undefined;
  if (plain !== undefined) {
    reader.at += 2;
    return plain.codePointAt(0)!;
  }
  const digits = text.slice(reader.at + 2, reader.at + 2 + (HEX[sign] ?? 0));
  const value = Number.parseInt(digits, 16);
  const isPoint = HEX[sign] === digits.length && /^[0-9a-fA-F]+$/.test(digits) && value <= 0x10ffff;
  if (!isPoint || (value >= 0xd800 && value <= 0xdfff))
    fail(reader, 'an escape: \\n \\r \\t \\\\ \\" \\[ \\] \\x00 \\u0000');
  reader.at += 2 + digits.length;
  return value;
}
