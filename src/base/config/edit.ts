/**
 * Edits settings in a JSON5 text and preserves the rest: comments, order, quotes and layout. The text must be valid.
 */
import JSON5 from "json5";
import { AppError } from "../errors.ts";
import { describePath } from "./document.ts";
import { TOKEN } from "./positions.ts";

/** Keys, from the root. */
type Keys = readonly string[];

export type Edit =
  /** Creates missing parents. */
  | { readonly kind: "set"; readonly path: Keys; readonly value: unknown }
  /** Appends to a list, or creates it. */
  | { readonly kind: "append"; readonly path: Keys; readonly value: unknown }
  /** Removing a missing key does nothing. */
  | { readonly kind: "remove"; readonly path: Keys };

interface Span {
  readonly start: number;
  end: number;
}

interface Member extends Span {
  readonly key: string | undefined;
  readonly value: Node;
}

interface Node extends Span {
  readonly kind: "object" | "array" | "scalar";
  readonly members: Member[];
}

/** Throws `bad_request` if a path leads through a value that is not an object, or appends to one that is not a list. */
export function editJson5(text: string, edits: readonly Edit[]): string {
  return edits.reduce(applyEdit, text);
}

function applyEdit(text: string, edit: Edit): string {
  const tokens = tokensOf(text);
  const root = parse(tokens);
  let node = root;
  for (const [depth, key] of edit.path.entries()) {
    if (node.kind !== "object") throw expected("an object", edit.path.slice(0, depth));
    const member = node.members.findLast((each) => each.key === key); // the last of repeated keys counts
    if (!member) {
      if (edit.kind === "remove") return text;
      const value = edit.kind === "append" ? [edit.value] : edit.value;
      const inner = edit.path.slice(depth + 1).reduceRight<unknown>((within, name) => ({ [name]: within }), value);
      return insert({ text, tokens }, node, { key, value: inner });
    }
    if (edit.kind === "remove" && depth === edit.path.length - 1) return cut({ text, tokens }, member);
    node = member.value;
  }
  if (edit.kind === "append") {
    if (node.kind !== "array") throw expected("a list", edit.path);
    return insert({ text, tokens }, node, { value: edit.value });
  }
  if (edit.kind === "remove") return text;
  return text.slice(0, node.start) + format(edit.value, indentAt(text, node.start)) + text.slice(node.end);
}

const expected = (what: string, path: Keys): AppError =>
  new AppError("bad_request", `${describePath(path) || "the configuration"}: expected ${what}`);

interface Token extends Span {
  readonly text: string;
  readonly isComment: boolean;
}

const tokensOf = (text: string): Token[] =>
  [...text.matchAll(TOKEN)].map(({ 0: token, index }) => ({
    text: token,
    start: index,
    end: index + token.length,
    isComment: /^\/[/*]/.test(token),
  }));

function parse(tokens: readonly Token[]): Node {
  const code = tokens.filter(({ isComment }) => !isComment);
  let at = 0;
  const value = (): Node => {
    const open = code[at++];
    if (!open) return { kind: "scalar", start: 0, end: 0, members: [] };
    const { start, end, text } = open;
    if (text !== "{" && text !== "[") return { kind: "scalar", start, end, members: [] };
    const node: Node = { kind: text === "{" ? "object" : "array", start, end, members: [] };
    for (let next = code[at]; next && next.text !== "}" && next.text !== "]"; next = code[at]) {
      if (next.text === ",") at++;
      else node.members.push(member(node.kind === "object" ? next : undefined));
    }
    node.end = code[at++]?.end ?? node.end;
    return node;
  };
  const member = (name: Token | undefined): Member => {
    if (name) at += 2; // the key and its colon
    const inner = value();
    const key = name && (/^["']/.test(name.text) ? JSON5.parse<string>(name.text) : name.text);
    return { key, start: name?.start ?? inner.start, end: inner.end, value: inner };
  };
  return value();
}

interface Source {
  readonly text: string;
  readonly tokens: readonly Token[];
}

/** Inserts after the last member: on a separate line, unless the whole object is on one line. */
function insert({ text, tokens }: Source, into: Node, { key, value }: { key?: string; value: unknown }): string {
  const name = key === undefined ? "" : `${/^[A-Za-z_$][\w$]*$/.test(key) ? key : JSON.stringify(key)}: `;
  const last = into.members.at(-1);
  const newline = text.includes("\r\n") ? "\r\n" : "\n";
  const outer = indentAt(text, into.start);
  const isOneLine = last !== undefined && !text.slice(into.start, last.start).includes("\n");
  if (last && isOneLine) {
    return `${text.slice(0, last.end)}, ${name}${compact(value)}${text.slice(last.end)}`;
  }
  const indent = last ? indentAt(text, last.start) : `${outer}  `;
  const entry = `${newline}${indent}${name}${format(value, indent)},`;
  if (!last) {
    const inner = text.slice(into.start + 1, into.end);
    const gap = inner.includes("\n") ? "" : `${newline}${outer}`;
    return text.slice(0, into.start + 1) + entry + gap + text.slice(into.start + 1);
  }
  const { at, hasComma } = endOfMember({ text, tokens }, last);
  return `${text.slice(0, last.end)}${hasComma ? "" : ","}${text.slice(last.end, at)}${entry}${text.slice(at)}`;
}

/** The end of a member's text: after its comma and the comments on its line. */
function endOfMember({ text, tokens }: Source, { end }: Span): { at: number; hasComma: boolean } {
  let at = end;
  let hasComma = false;
  for (const token of tokens) {
    if (token.start < end) continue;
    const isNear = !text.slice(at, token.start).includes("\n");
    if (token.text === "," && !hasComma) hasComma = true;
    else if (!token.isComment || (!isNear && hasComma)) break;
    else if (!isNear) continue; // a comment between a member and its comma
    at = token.end;
  }
  return { at, hasComma };
}

/** Removes a member, and its line if nothing else is on it. */
function cut(source: Source, member: Member): string {
  const { text } = source;
  const { at, hasComma } = endOfMember(source, member);
  const end = hasComma ? at : member.end;
  const lineStart = text.lastIndexOf("\n", member.start - 1);
  const isAlone = text.slice(lineStart + 1, member.start).trim() === "" && /^[^\S\n]*(\r?\n|$)/.test(text.slice(end));
  return text.slice(0, isAlone ? Math.max(0, lineStart) : member.start).replace(/\r$/, "") + text.slice(end);
}

/** Indentation of the line at `at`. */
const indentAt = (text: string, at: number): string =>
  /^[^\S\n]*/.exec(text.slice(text.lastIndexOf("\n", at - 1) + 1, at))?.[0] ?? "";

const format = (value: unknown, indent: string): string =>
  JSON5.stringify(value, { space: 2, quote: '"' })
    .replace(/\[\n\s*("[^"\n]*"),\n\s*\]/g, "[$1]")
    .replaceAll("\n", `\n${indent}`);

const compact = (value: unknown): string =>
  JSON5.stringify(value, { space: 1, quote: '"' })
    .replace(/,?\n *(?=[\]}])/g, (found) => (found.startsWith(",") ? " " : ""))
    .replace(/\n */g, " ");
