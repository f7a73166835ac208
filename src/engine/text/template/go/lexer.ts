/**
 * Tokens of a Go text/template: text between actions, and inside `{{ }}` words, fields, variables, constants and
 * punctuation. Trim markers (`{{- `, ` -}}`) and comments are resolved here and never reach the parser. A lexical error
 * becomes the last token, so that the parser reports the first mistake. Ported from the state functions of
 * text/template/parse/lex.go.
 */

export type TokenKind =
  | "text"
  | "open" // {{
  | "close" // }}
  | "space"
  | "word" // identifier: a function's name
  | "keyword"
  | "field" // .Name
  | "dot"
  | "variable" // $ or $name
  | "bool"
  | "number"
  | "char"
  | "string"
  | "rawString"
  | "pipe"
  | "declare" // :=
  | "assign" // =
  | "leftParen"
  | "rightParen"
  | "punctuation" // any other printable character; only the comma has a meaning
  | "end" // end of input
  | "error"; // text is the message

/** `at` is the offset of its first character in the source. */
export interface Token {
  readonly kind: TokenKind;
  readonly text: string;
  readonly at: number;
}

/** The position after a token. */
export const endOf = (token: Token): number => token.at + token.text.length;

const KEYWORDS: ReadonlySet<string> = new Set(
  "block break continue define else end if nil range template with".split(" "),
);
const SPACE = /[ \t\r\n]/;
const WORD = /[\p{L}\p{Nd}_]+/uy;
const WORD_CHARACTER = /[\p{L}\p{Nd}_]/u;
const HEX = String.raw`0[xX][\da-fA-F_]*(?:\.[\da-fA-F_]*)?(?:[pP][+-]?[\d_]*)?`;
const DECIMAL = String.raw`[\d_]*(?:\.[\d_]*)?(?:[eE][+-]?[\d_]*)?`;
const NUMBER = new RegExp(String.raw`[+-]?(?:${HEX}|0[oO][0-7_]*|0[bB][01_]*|${DECIMAL})i?`, "y");
const SINGLE: Readonly<Record<string, TokenKind>> = { "|": "pipe", "=": "assign", "(": "leftParen", ")": "rightParen" };

/** Splits a template into tokens; the last one is `end` or `error`. */
export function tokenize(source: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (at < source.length) {
    const open = source.indexOf("{{", at);
    if (open < 0) break;
    const trimsLeft = source[open + 2] === "-" && isSpace(source[open + 3]);
    const text = source.slice(at, open);
    const kept = trimsLeft ? trimRight(text) : text;
    if (kept !== "") tokens.push({ kind: "text", text: kept, at });
    const inside = open + 2 + (trimsLeft ? 2 : 0);
    const next = source.startsWith("/*", inside)
      ? skipComment(source, inside, tokens)
      : readAction(source, { open, inside }, tokens);
    if (next < 0) return tokens; // the error is recorded
    at = next;
  }
  if (at < source.length) tokens.push({ kind: "text", text: source.slice(at), at });
  tokens.push({ kind: "end", text: "", at: source.length });
  return tokens;
}

/** Returns the offset after the closing delimiter (and the space it trims), or −1 after an error. */
function readAction(source: string, start: { open: number; inside: number }, tokens: Token[]): number {
  tokens.push({ kind: "open", text: "{{", at: start.open });
  let at = start.inside;
  let depth = 0;
  const fail = (message: string, where = at): number => {
    tokens.push({ kind: "error", text: message, at: where });
    return -1;
  };
  while (at < source.length) {
    const close = closeLength(source, at);
    if (close > 0) {
      if (depth > 0) return fail("unclosed left paren");
      tokens.push({ kind: "close", text: "}}", at: at + close - 2 });
      return close === 2 ? at + 2 : skipSpace(source, at + close);
    }
    const token = readToken(source, at);
    if (token.kind === "error") return fail(token.text, token.at);
    if (token.kind === "leftParen") depth++;
    if (token.kind === "rightParen" && --depth < 0) return fail("unexpected right paren");
    tokens.push(token);
    at += token.text.length;
  }
  return fail("unclosed action", start.open);
}

/** One token of an action at `at`, which is inside the source and not a closing delimiter. */
function readToken(source: string, at: number): Token {
  const c = source[at]!;
  if (isSpace(c)) return { kind: "space", text: readSpace(source, at), at };
  if (c === ":") {
    return source[at + 1] === "=" ? { kind: "declare", text: ":=", at } : { kind: "error", text: "expected :=", at };
  }
  const single = SINGLE[c];
  if (single !== undefined) return { kind: single, text: c, at };
  if (c === '"') return readQuoted(source, at, { quote: '"', kind: "string", name: "quoted string" });
  if (c === "'") return readQuoted(source, at, { quote: "'", kind: "char", name: "character constant" });
  if (c === "`") {
    const end = source.indexOf("`", at + 1);
    if (end < 0) return { kind: "error", text: "unterminated raw quoted string", at };
    return { kind: "rawString", text: source.slice(at, end + 1), at };
  }
  if (c === "$" || (c === "." && !isDigit(source[at + 1]))) return readName(source, at);
  if (c === "." || c === "+" || c === "-" || isDigit(c)) return readNumber(source, at);
  if (isWordCharacter(source, at)) return readName(source, at);
  if (c > " " && c <= "~") return { kind: "punctuation", text: c, at };
  return { kind: "error", text: `unrecognized character in action: ${codePointName(source, at)}`, at };
}

/** A word, `.field`, `$variable`, or `.` and `$` alone. */
function readName(source: string, at: number): Token {
  const sigil = source[at] === "." || source[at] === "$" ? source[at]! : "";
  WORD.lastIndex = at + sigil.length;
  const word = WORD.exec(source)?.[0] ?? "";
  const text = sigil + word;
  const end = at + text.length;
  if (!isTerminator(source, end)) {
    return { kind: "error", text: `bad character ${codePointName(source, end)}`, at: end };
  }
  if (sigil === "$") return { kind: "variable", text, at };
  if (sigil === ".") return { kind: word === "" ? "dot" : "field", text, at };
  if (KEYWORDS.has(word)) return { kind: "keyword", text, at };
  return { kind: word === "true" || word === "false" ? "bool" : "word", text, at };
}

function readNumber(source: string, at: number): Token {
  NUMBER.lastIndex = at;
  const text = NUMBER.exec(source)?.[0] ?? "";
  const end = at + text.length;
  if (text === "" || isWordCharacter(source, end) || source[end] === "+" || source[end] === "-") {
    return { kind: "error", text: `bad number syntax: "${source.slice(at, end + 1)}"`, at };
  }
  return { kind: "number", text, at };
}

function readQuoted(source: string, at: number, as: { quote: string; kind: TokenKind; name: string }): Token {
  for (let i = at + 1; i < source.length && source[i] !== "\n"; i++) {
    if (source[i] === as.quote) return { kind: as.kind, text: source.slice(at, i + 1), at };
    if (source[i] === "\\" && source[++i] === "\n") break;
  }
  return { kind: "error", text: `unterminated ${as.name}`, at };
}

/** Leaves the last space in place before a trim marker: it belongs to the closing delimiter. */
function readSpace(source: string, at: number): string {
  let end = skipSpace(source, at);
  if (end - at > 1 && closeLength(source, end - 1) === 4) end--;
  return source.slice(at, end);
}

function skipComment(source: string, at: number, tokens: Token[]): number {
  const end = source.indexOf("*/", at + 2);
  if (end < 0) {
    tokens.push({ kind: "error", text: "unclosed comment", at });
    return -1;
  }
  const close = closeLength(source, end + 2);
  if (close === 0) {
    tokens.push({ kind: "error", text: "comment ends before closing delimiter", at: end });
    return -1;
  }
  return close === 2 ? end + 4 : skipSpace(source, end + 6);
}

/** Characters of the closing delimiter at `at`: 2 for `}}`, 4 for ` -}}`, 0 for none. */
function closeLength(source: string, at: number): number {
  if (source.startsWith("}}", at)) return 2;
  return isSpace(source[at]) && source.startsWith("-}}", at + 1) ? 4 : 0;
}

/** Returns whether a name may end at `at`; catches `$x+2` and `.a-b` early. */
function isTerminator(source: string, at: number): boolean {
  const c = source[at];
  return c === undefined || isSpace(c) || ".,|:()".includes(c) || source.startsWith("}}", at);
}

function skipSpace(source: string, at: number): number {
  let end = at;
  while (isSpace(source[end])) end++;
  return end;
}

function trimRight(text: string): string {
  let end = text.length;
  while (isSpace(text[end - 1])) end--;
  return text.slice(0, end);
}

const isSpace = (c: string | undefined): boolean => c !== undefined && SPACE.test(c);
const isDigit = (c: string | undefined): boolean => c !== undefined && c >= "0" && c <= "9";

function isWordCharacter(source: string, at: number): boolean {
  const code = source.codePointAt(at);
  return code !== undefined && WORD_CHARACTER.test(String.fromCodePoint(code));
}

function codePointName(source: string, at: number): string {
  const code = source.codePointAt(at) ?? 0;
  return `U+${code.toString(16).toUpperCase().padStart(4, "0")} '${String.fromCodePoint(code)}'`;
}
