/**
 * Templates: an operator's text with values of a request in double braces. The result remembers the author of each
 * part. A tag is a path and filters, `{{ path | filter: argument, argument }}`; templates execute no code.
 */
import { AppError, messageOf } from "../../../base/index.ts";
import { type Part, type TaintedText, plain } from "../../agent/boundary/tainted-text.ts";
import { isMissing, type Literal, makeFilter, type Piece, textOf } from "./filters.ts";
import { parsePath, ROOTS, type ValuePath, valueAt } from "./path.ts";
import type { View } from "./request.ts";

const TAGS_MAX = 500;
const FILTERS_MAX = 16;
/** Maximum number of characters of a rendered template: longer than any model's context. */
const OUTPUT_CHARS_MAX = 1024 * 1024;

interface Tag {
  readonly source: string;
  readonly path: ValuePath;
  readonly filters: readonly ((piece: Piece) => Piece)[];
}

export interface Rendered {
  readonly tainted: TaintedText;
  /** True if a value was missing. */
  readonly isPartial: boolean;
}

export interface TemplateOptions {
  readonly missing: "empty" | "keep" | "error";
  readonly roots?: readonly (keyof View)[];
}

/** Throws `bad_request` for unbalanced braces, an invalid path or filter, and for too many tags. */
export function makeTemplate(source: string, options: TemplateOptions): (view: View) => Rendered {
  const parts = split(source).map((part) => (typeof part === "string" ? part : parseTag(part, options)));
  if (parts.length > 2 * TAGS_MAX) throw new AppError("bad_request", `template: expected at most ${TAGS_MAX} tags`);
  return (view) => render(parts, { view, missing: options.missing });
}

export const plainText = (rendered: Rendered): string => plain(rendered.tainted);

/** A tag. Quotes inside it may hold braces. */
const TAG = /\{\{(?!\s*\}\})((?:[^{}"']|"[^"]*"|'[^']*')+)\}\}/g;

/** Literal text, and the insides of tags. */
function split(source: string): (string | { readonly tag: string })[] {
  const parts: (string | { tag: string })[] = [];
  let at = 0;
  const addText = (end: number): void => {
    checkBraces(source, at, end);
    if (end > at) parts.push(source.slice(at, end));
  };
  for (const match of source.matchAll(TAG)) {
    addText(match.index);
    parts.push({ tag: match[1] ?? "" });
    at = match.index + match[0].length;
  }
  addText(source.length);
  return parts;
}

/** Throws `bad_request` if the text from `start` to `end` opens a tag that is empty or never closed. */
function checkBraces(source: string, start: number, end: number): void {
  const at = source.indexOf("{{", start);
  if (at === -1 || at >= end) return;
  const before = source.slice(0, at).split("\n");
  const place = `line ${before.length}, column ${(before.at(-1) ?? "").length + 1}`;
  const text = source.slice(at, end);
  const what = /^\{\{\s*\}\}/.test(text)
    ? "'{{}}' is empty: expected a path such as {{ payload.title }}"
    : `'${text.slice(0, 20)}' is not closed: expected '}}' after a path`;
  throw new AppError("bad_request", `${place}: ${what}; braces as text are written {{ "{{" }}`);
}

/** A quoted text stands for itself. */
function parseTag({ tag }: { tag: string }, { roots = ROOTS }: TemplateOptions): Tag | string {
  const quoted = /^\s*(?:"([^"]*)"|'([^']*)')\s*$/.exec(tag);
  if (quoted) return quoted[1] ?? quoted[2] ?? "";
  const [path = "", ...filters] = splitOutsideQuotes(tag, "|");
  if (filters.length > FILTERS_MAX) {
    throw new AppError("bad_request", `'{{${tag}}}': expected at most ${FILTERS_MAX} filters, got ${filters.length}`);
  }
  try {
    return { source: `{{${tag}}}`, path: parsePath(path, roots), filters: filters.map(parseFilter) };
  } catch (error) {
    throw new AppError("bad_request", `'{{${tag}}}': ${messageOf(error)}`, { cause: error });
  }
}

function parseFilter(source: string): (piece: Piece) => Piece {
  const [name = "", rest] = source.split(/:(.*)/s);
  const args = rest === undefined ? [] : splitOutsideQuotes(rest, ",").map(parseLiteral);
  return makeFilter(name.trim(), args);
}

function splitOutsideQuotes(text: string, separator: "|" | ","): string[] {
  const pieces: string[] = [];
  let quote = "";
  let start = 0;
  for (let i = 0; i < text.length; i++) {
    const char = text[i] ?? "";
    if (quote) quote = char === quote ? "" : quote;
    else if (char === '"' || char === "'") quote = char;
    else if (char === separator) {
      pieces.push(text.slice(start, i));
      start = i + 1;
    }
  }
  return [...pieces, text.slice(start)];
}

function parseLiteral(source: string): Literal {
  const text = source.trim();
  const quoted = /^"([^"]*)"$|^'([^']*)'$/.exec(text);
  if (quoted) return quoted[1] ?? quoted[2] ?? "";
  if (text === "true" || text === "false") return text === "true";
  if (text === "null") return null;
  const number = Number(text);
  if (text !== "" && Number.isFinite(number)) return number;
  throw new AppError("bad_request", `argument ${text || "(nothing)"}: expected a text in quotes or a number`);
}

function render(
  parts: readonly (string | Tag)[],
  { view, missing }: { view: View; missing: TemplateOptions["missing"] },
): Rendered {
  const tainted: Part[] = [];
  let isPartial = false;
  let chars = 0;
  const add = (part: Part): void => {
    chars += part.text.length;
    if (chars > OUTPUT_CHARS_MAX) {
      throw new AppError("too_large", `template: expected at most ${OUTPUT_CHARS_MAX} characters of output`);
    }
    const before = tainted.at(-1);
    if (before?.from === part.from) tainted[tainted.length - 1] = { ...part, text: before.text + part.text };
    else if (part.text !== "") tainted.push(part);
  };
  for (const part of parts) {
    const piece = typeof part === "string" ? { value: part, from: "operator" as const } : pieceOf(part, view);
    if (typeof part !== "string" && isMissing(piece.value)) {
      isPartial = true;
      if (missing === "error") throw new AppError("bad_request", `'${part.path.text}' has no value in this request`);
      add({ from: "operator", text: missing === "keep" ? part.source : "" });
    } else add({ from: piece.from, text: textOf(piece.value) });
  }
  return { tainted, isPartial };
}

function pieceOf({ path, filters }: Tag, view: View): Piece {
  const from = path.root === "now" || path.root === "index" ? "operator" : "external";
  return filters.reduce<Piece>((piece, apply) => apply(piece), { value: valueAt(view, path), from });
}
