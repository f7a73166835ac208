/**
 * Parser of Go text/template: source → named lists of nodes. Grammar and wording of the errors follow
 * text/template/parse/parse.go; `else with` (Go 1.23) is included. Functions must exist when a template is parsed.
 */
import { AppError } from "../../../../base/index.ts";
import type { Command, Node, Operand, Pipe } from "./ast.ts";
import { parseCharacter, parseNumber, unquote } from "./constants.ts";
import { templateError } from "./error.ts";
import { endOf, tokenize, type Token, type TokenKind } from "./lexer.ts";

/** Far above any real template (the longest known has 30 kB); keeps every later offset and loop small. */
const MAX_TEMPLATE_LENGTH = 1024 * 1024;
/** Nesting of parentheses and control structures; the parser recurses once or twice for each. */
const MAX_NESTING = 200;
/** Variables in scope at one place; each use searches them. */
const MAX_VARIABLES = 200;

/** `main` and every `define` and `block` by name. */
export interface Parsed {
  readonly main: readonly Node[];
  readonly defined: ReadonlyMap<string, readonly Node[]>;
}

/** @throws AppError `bad_request` with line and column */
export function parse(source: string, functions: ReadonlySet<string>): Parsed {
  if (source.length > MAX_TEMPLATE_LENGTH) {
    throw new AppError(
      "too_large",
      `template: expected at most ${MAX_TEMPLATE_LENGTH} characters, got ${source.length}`,
    );
  }
  const tokens = tokenize(source);
  const cursor: Cursor = { source, functions, tokens, at: 0, depth: 0, defined: new Map(), filled: new Set() };
  const scope: Scope = { variables: ["$"], ranges: 0 };
  const main: Node[] = [];
  while (peek(cursor).kind !== "end") {
    if (takeDefinition(cursor)) continue;
    const item = parseItem(cursor, scope);
    if (item.kind !== "node") throw fail(cursor, item.token, `unexpected {{${item.kind}}}`);
    main.push(item.node);
  }
  return { main, defined: cursor.defined };
}

interface Cursor {
  readonly source: string;
  readonly functions: ReadonlySet<string>;
  readonly tokens: readonly Token[];
  at: number;
  depth: number;
  readonly defined: Map<string, readonly Node[]>;
  /** The non-blank ones among them. */
  readonly filled: Set<string>;
}

/** Names visible at this point; a `define` starts with a fresh one. */
interface Scope {
  readonly variables: string[];
  ranges: number;
}

type Item = { readonly kind: "node"; readonly node: Node } | { readonly kind: "end" | "else"; readonly token: Token };

const END_TOKEN_KINDS: ReadonlySet<TokenKind> = new Set(["end", "error"]);

/** The next token; at the end, the last one again. */
const peek = (c: Cursor): Token => c.tokens[Math.min(c.at, c.tokens.length - 1)]!;

function next(c: Cursor): Token {
  const token = peek(c);
  c.at++;
  return token;
}

function peekPastSpace(c: Cursor): Token {
  while (peek(c).kind === "space") c.at++;
  return peek(c);
}

function nextPastSpace(c: Cursor): Token {
  peekPastSpace(c);
  return next(c);
}

const isKeyword = (token: Token, word: string): boolean => token.kind === "keyword" && token.text === word;

const fail = (c: Cursor, token: Token, message: string): AppError => templateError(c.source, token.at, message);

/** The error for an unexpected token: the lexer's own message if it has one. */
function unexpected(c: Cursor, token: Token, context: string): AppError {
  if (token.kind === "error") return fail(c, token, token.text);
  const shown = token.text.length > 20 ? `${token.text.slice(0, 20)}…` : token.text;
  return fail(c, token, `unexpected ${token.kind === "end" ? "end of template" : `"${shown}"`} in ${context}`);
}

function expect(c: Cursor, kind: TokenKind, context: string): Token {
  const token = nextPastSpace(c);
  if (token.kind !== kind) throw unexpected(c, token, context);
  return token;
}

/** Runs `inner` one level deeper. */
function nested<T>(c: Cursor, inner: () => T): T {
  if (++c.depth > MAX_NESTING) {
    throw templateError(c.source, peek(c).at, `nested deeper than ${MAX_NESTING}`, "too_large");
  }
  const result = inner();
  c.depth--;
  return result;
}

/** `{{define "name"}} … {{end}}` at the top level, at which the cursor is. */
function takeDefinition(c: Cursor): boolean {
  if (peek(c).kind !== "open") return false;
  const before = c.at;
  c.at++;
  if (!isKeyword(nextPastSpace(c), "define")) {
    c.at = before;
    return false;
  }
  const name = parseName(c, "define clause");
  expect(c, "close", "define clause");
  defineBody(c, name, "define clause");
  return true;
}

function defineBody(c: Cursor, name: { text: string; token: Token }, context: string): void {
  const list = nested(c, () => parseList(c, { variables: ["$"], ranges: 0 }));
  if (list.stop.kind !== "end") throw fail(c, list.stop.token, `unexpected {{else}} in ${context}`);
  const blank = isBlank(list.nodes);
  if (!c.filled.has(name.text)) c.defined.set(name.text, list.nodes);
  else if (!blank) throw fail(c, name.token, `multiple definition of template ${JSON.stringify(name.text)}`);
  if (!blank) c.filled.add(name.text);
}

const isBlank = (nodes: readonly Node[]): boolean =>
  nodes.every((node) => node.kind === "text" && node.text.trim() === "");

/** Items up to the `{{end}}` or `{{else}}` that closes them. */
function parseList(c: Cursor, scope: Scope): { nodes: Node[]; stop: { kind: "end" | "else"; token: Token } } {
  const nodes: Node[] = [];
  while (peekPastSpace(c).kind !== "end") {
    const item = parseItem(c, scope);
    if (item.kind !== "node") return { nodes, stop: item };
    nodes.push(item.node);
  }
  throw fail(c, peek(c), "unexpected end of template, expected {{end}}");
}

/** Text or one action. */
function parseItem(c: Cursor, scope: Scope): Item {
  const token = nextPastSpace(c);
  if (token.kind === "text") return { kind: "node", node: { kind: "text", text: token.text } };
  if (token.kind !== "open") throw unexpected(c, token, "input");
  const word = peekPastSpace(c);
  if (word.kind === "keyword") {
    if (word.text === "end") {
      c.at++;
      expect(c, "close", "end");
      return { kind: "end", token: word };
    }
    if (word.text === "else") {
      c.at++;
      const after = peekPastSpace(c);
      if (!isKeyword(after, "if") && !isKeyword(after, "with")) expect(c, "close", "else");
      return { kind: "else", token: word };
    }
    const node = parseControl(c, scope, word);
    if (node) return { kind: "node", node };
  }
  return { kind: "node", node: { kind: "action", pipe: parsePipe(c, scope, { context: "command", close: "close" }) } };
}

/** Undefined if the keyword starts no control structure (`nil`; `define` below the top level). */
function parseControl(c: Cursor, scope: Scope, word: Token): Node | undefined {
  const kind = word.text;
  if (kind === "if" || kind === "with" || kind === "range") {
    c.at++;
    return nested(c, () => parseBranch(c, scope, kind));
  }
  if (kind === "break" || kind === "continue") {
    c.at++;
    expect(c, "close", `{{${kind}}}`);
    if (scope.ranges === 0) throw fail(c, word, `{{${kind}}} outside {{range}}`);
    return { kind };
  }
  if (kind === "template" || kind === "block") {
    c.at++;
    return parseInvocation(c, scope, kind);
  }
  return undefined;
}

function parseBranch(c: Cursor, scope: Scope, kind: "if" | "with" | "range"): Node {
  const known = scope.variables.length;
  const pipe = parsePipe(c, scope, { context: kind, close: "close" });
  if (kind === "range") scope.ranges++;
  const body = parseList(c, scope);
  if (kind === "range") scope.ranges--;
  let otherwise: readonly Node[] | undefined;
  if (body.stop.kind === "else") otherwise = parseElse(c, scope, kind);
  scope.variables.length = known;
  return { kind, pipe, body: body.nodes, otherwise };
}

/** After `else`: a list up to `{{end}}`, or the branch of `else if` and `else with`, which shares its `{{end}}`. */
function parseElse(c: Cursor, scope: Scope, kind: "if" | "with" | "range"): readonly Node[] {
  const word = peekPastSpace(c);
  if (word.kind === "keyword" && (word.text === "if" || word.text === "with")) {
    const follower = word.text;
    if (follower !== kind) throw fail(c, word, `unexpected {{else ${follower}}} in ${kind}`);
    c.at++;
    return [nested(c, () => parseBranch(c, scope, follower))];
  }
  const list = parseList(c, scope);
  if (list.stop.kind !== "end") throw fail(c, list.stop.token, "expected {{end}}, found {{else}}");
  return list.nodes;
}

/** `{{template "name" pipeline}}`, or `{{block "name" pipeline}} … {{end}}`, which defines it first. */
function parseInvocation(c: Cursor, scope: Scope, kind: "template" | "block"): Node {
  const context = `${kind} clause`;
  const name = parseName(c, context);
  let pipe: Pipe | undefined;
  if (kind === "block" || peekPastSpace(c).kind !== "close") pipe = parsePipe(c, scope, { context, close: "close" });
  else c.at++;
  if (kind === "block") defineBody(c, name, context);
  return { kind: "template", name: name.text, pipe, at: name.token.at, end: pipe?.end ?? endOf(name.token) };
}

function parseName(c: Cursor, context: string): { text: string; token: Token } {
  const token = nextPastSpace(c);
  if (token.kind !== "string" && token.kind !== "rawString") throw unexpected(c, token, context);
  return { text: constant(c, token, () => unquote(token.text)), token };
}

/** A pipeline with its variables, up to and including the closing token. */
function parsePipe(c: Cursor, scope: Scope, where: { context: string; close: TokenKind }): Pipe {
  const at = peekPastSpace(c).at;
  const { targets, assigns } = parseTargets(c, scope, where.context);
  const commands: Command[] = [];
  for (;;) {
    const token = peekPastSpace(c);
    if (token.kind === where.close) break;
    if (END_TOKEN_KINDS.has(token.kind) || !STARTS_OPERAND.has(token.kind)) {
      if (!isKeyword(token, "nil")) throw unexpected(c, token, where.context);
    }
    commands.push(parseCommand(c, scope));
    const first = commands.at(-1)!.operands[0].kind;
    if (commands.length > 1 && (first === "dot" || first === "nil" || first === "constant")) {
      throw fail(c, token, `non executable command in pipeline stage ${commands.length}`);
    }
  }
  const close = next(c);
  if (commands.length === 0) throw fail(c, close, `missing value for ${where.context}`);
  return { kind: "pipe", targets, assigns, commands, at, end: commands.at(-1)!.end };
}

const STARTS_OPERAND: ReadonlySet<TokenKind> = new Set<TokenKind>([
  "bool",
  "char",
  "dot",
  "field",
  "word",
  "number",
  "rawString",
  "string",
  "variable",
  "leftParen",
]);

/** `$x :=`, `$x =`, and for range `$i, $x :=`. */
function parseTargets(c: Cursor, scope: Scope, context: string): { targets: string[]; assigns: boolean } {
  const targets: string[] = [];
  for (;;) {
    const before = c.at;
    const variable = peekPastSpace(c);
    if (variable.kind !== "variable") return { targets, assigns: false };
    c.at++;
    const after = peekPastSpace(c);
    if (after.kind === "declare" || after.kind === "assign") {
      c.at++;
      if (after.kind === "assign" && !scope.variables.includes(variable.text)) {
        throw fail(c, variable, `undefined variable "${variable.text}"`);
      }
      targets.push(variable.text);
      if (after.kind === "declare") declare(c, scope, variable);
      return { targets, assigns: after.kind === "assign" };
    }
    if (after.kind !== "punctuation" || after.text !== ",") {
      c.at = before;
      return { targets, assigns: false };
    }
    c.at++;
    if (context !== "range" || targets.length > 0) throw fail(c, after, `too many declarations in ${context}`);
    targets.push(variable.text);
    declare(c, scope, variable);
    if (peekPastSpace(c).kind !== "variable") throw fail(c, peek(c), "range can only initialize variables");
  }
}

function declare(c: Cursor, scope: Scope, variable: Token): void {
  if (scope.variables.length > MAX_VARIABLES) {
    throw templateError(c.source, variable.at, `more than ${MAX_VARIABLES} variables`, "too_large");
  }
  scope.variables.push(variable.text);
}

/** Operands up to a pipe character, which is consumed, or a closing token, which is not. */
function parseCommand(c: Cursor, scope: Scope): Command {
  const at = peekPastSpace(c).at;
  const operands: Operand[] = [];
  for (;;) {
    peekPastSpace(c);
    const operand = parseOperand(c, scope);
    if (operand) operands.push(operand);
    const token = peek(c);
    if (token.kind === "space") continue;
    if (token.kind === "pipe") {
      c.at++;
    } else if (token.kind !== "close" && token.kind !== "rightParen") throw unexpected(c, token, "operand");
    const [first, ...rest] = operands;
    if (!first) throw fail(c, token, "empty command");
    return { operands: [first, ...rest], at, end: operands.at(-1)!.end };
  }
}

/** A term with the `.Field`s attached to it. */
function parseOperand(c: Cursor, scope: Scope): Operand | undefined {
  const term = parseTerm(c, scope);
  if (!term || peek(c).kind !== "field") return term;
  const path: string[] = [];
  let end = term.end;
  while (peek(c).kind === "field") {
    const field = next(c);
    path.push(field.text.slice(1));
    end = endOf(field);
  }
  if (term.kind === "field" || term.kind === "variable") return { ...term, path: [...term.path, ...path], end };
  if (term.kind === "pipe" || term.kind === "function") return { kind: "chain", base: term, path, at: term.at, end };
  throw templateError(c.source, term.at, `unexpected . after ${JSON.stringify(c.source.slice(term.at, term.end))}`);
}

/** Undefined if the next token starts no operand; then it is not consumed. */
function parseTerm(c: Cursor, scope: Scope): Operand | undefined {
  const token = peek(c);
  const spot = { at: token.at, end: endOf(token) };
  switch (token.kind) {
    case "word":
      if (!c.functions.has(token.text)) throw fail(c, token, `function "${token.text}" not defined`);
      c.at++;
      return { kind: "function", name: token.text, ...spot };
    case "dot":
      c.at++;
      return { kind: "dot", ...spot };
    case "keyword":
      if (token.text !== "nil") return undefined;
      c.at++;
      return { kind: "nil", ...spot };
    case "variable":
      if (!scope.variables.includes(token.text)) throw fail(c, token, `undefined variable "${token.text}"`);
      c.at++;
      return { kind: "variable", name: token.text, path: [], ...spot };
    case "field":
      c.at++;
      return { kind: "field", path: [token.text.slice(1)], ...spot };
    case "leftParen": {
      c.at++;
      const pipe = nested(c, () => parsePipe(c, scope, { context: "parenthesized pipeline", close: "rightParen" }));
      return { ...pipe, ...spot, end: endOf(c.tokens[c.at - 1]!) };
    }
    default:
      return parseConstant(c, token);
  }
}

function parseConstant(c: Cursor, token: Token): Operand | undefined {
  const read = CONSTANTS[token.kind];
  if (!read) return undefined;
  c.at++;
  return { kind: "constant", value: constant(c, token, () => read(token.text)), at: token.at, end: endOf(token) };
}

const CONSTANTS: Partial<Record<TokenKind, (text: string) => boolean | bigint | number | string>> = {
  bool: (text) => text === "true",
  number: parseNumber,
  char: parseCharacter,
  string: unquote,
  rawString: unquote,
};

/** Adds the place to an error of a constant. */
function constant<T>(c: Cursor, token: Token, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof AppError) throw fail(c, token, error.message);
    throw error;
  }
}
