/**
 * Templates: an operator's text with values of a request in double braces. What comes out remembers which parts are
 * whose. A tag is a path and filters, `{{ path | filter: argument, argument }}`; there is nothing to execute.
 */
import { AppError, messageOf } from "../../base/errors.ts";
import { type Part, type Passage, plain } from "../../base/passage.ts";
import { isMissing, type Literal, makeFilter, type Piece, textOf } from "./filters.ts";
import { parsePath, ROOTS, type ValuePath, valueAt } from "./path.ts";
import type { View } from "./request.ts";

const TAGS_MAX = 500;
const FILTERS_MAX = 16;
/** Characters of what a template makes: longer than any model's context. */
const OUTPUT_CHARS_MAX = 1024 * 1024;

interface Tag {
  readonly source: string;
  readonly path: ValuePath;
  readonly filters: readonly ((piece: Piece) => Piece)[];
}

export interface Rendered {
  readonly passage: Passage;
  /** Whether a value was not there. */
  readonly isPartial: boolean;
}

export interface TemplateOptions {
  readonly missing: "empty" | "keep" | "error";
  readonly roots?: readonly (keyof View)[];
}

/** Throws `bad_request` for an invalid path or filter, and for too many tags. */
export function makeTemplate(source: string, options: TemplateOptions): (view: View) => Rendered {
  const parts = split(source).map((part) => (typeof part === "string" ? part : parseTag(part, options)));
  if (parts.length > 2 * TAGS_MAX) throw new AppError("bad_request", `a template has more than ${TAGS_MAX} tags`);
  return (view) => render(parts, { view, missing: options.missing });
}

/** Rendered as one text. */
export const plainText = (rendered: Rendered): string => plain(rendered.passage);

/** Literal text, and the insides of tags. Braces that are never closed are text. */
function split(source: string): (string | { readonly tag: string })[] {
  const parts: (string | { tag: string })[] = [];
  // quotes inside a tag may hold braces
  const tags = /\{\{((?:[^{}"']|"[^"]*"|'[^']*')+)\}\}/g;
  let at = 0;
  for (const match of source.matchAll(tags)) {
    if (match.index > at) parts.push(source.slice(at, match.index));
    parts.push({ tag: match[1] ?? "" });
    at = match.index + match[0].length;
  }
  if (at < source.length) parts.push(source.slice(at));
  return parts;
}

function parseTag({ tag }: { tag: string }, { roots = ROOTS }: TemplateOptions): Tag {
  const [path = "", ...filters] = splitOutsideQuotes(tag, "|");
  if (filters.length > FILTERS_MAX) {
    throw new AppError("bad_request", `'{{${tag}}}': at most ${FILTERS_MAX} filters, got ${filters.length}`);
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
  const passage: Part[] = [];
  let isPartial = false;
  let chars = 0;
  const add = (part: Part): void => {
    chars += part.text.length;
    if (chars > OUTPUT_CHARS_MAX) {
      throw new AppError("too_large", `a template made more than ${OUTPUT_CHARS_MAX} characters`);
    }
    const before = passage.at(-1);
    if (before?.from === part.from) passage[passage.length - 1] = { ...part, text: before.text + part.text };
    else if (part.text !== "") passage.push(part);
  };
  for (const part of parts) {
    const piece = typeof part === "string" ? { value: part, from: "operator" as const } : pieceOf(part, view);
    if (typeof part !== "string" && isMissing(piece.value)) {
      isPartial = true;
      if (missing === "error") throw new AppError("bad_request", `'${part.path.text}' has no value in this request`);
      add({ from: "operator", text: missing === "keep" ? part.source : "" });
    } else add({ from: piece.from, text: textOf(piece.value) });
  }
  return { passage, isPartial };
}

function pieceOf({ path, filters }: Tag, view: View): Piece {
  const from = path.root === "now" || path.root === "index" ? "operator" : "external";
  return filters.reduce<Piece>((piece, apply) => apply(piece), { value: valueAt(view, path), from });
}
