/**
 * Cuts text at its special tokens, the longest first wherever they are, as `tokenizer_st_partition` in llama-vocab.cpp
 * does. That function searches the text once per special token; here one walk over a trie finds which of them occur at
 * all (Gemma has 6,000), and only those are cut out.
 */
import { CONTROL, UNKNOWN, USER_DEFINED } from "./special-tokens.ts";
import type { Vocabulary } from "./vocabulary.ts";

/** Text still to be encoded, or the id of a special token. */
export type Fragment = string | number;

/** Which special tokens swallow the white space beside them. */
export interface StripRules {
  readonly before: ReadonlySet<number>;
  readonly after: ReadonlySet<number>;
}

interface Node {
  readonly next: Map<number, Node>;
  id: number;
}

/**
 * Makes the function that cuts. User-defined tokens are always cut out, control and unknown ones where `parseSpecial`.
 */
export function makePartition(
  { pieces, attributes }: Vocabulary,
  strip: StripRules,
): (text: string, parseSpecial: boolean) => Fragment[] {
  const always: number[] = [];
  const all: number[] = [];
  for (let id = 0; id < pieces.length; id++) {
    const attribute = attributes[id]!;
    if ((attribute & (CONTROL | UNKNOWN | USER_DEFINED)) === 0) continue;
    all.push(id);
    if ((attribute & (CONTROL | UNKNOWN)) === 0) always.push(id);
  }
  const tries: { always?: Node; all?: Node } = {};
  return (text, parseSpecial) => {
    const trie = parseSpecial ? (tries.all ??= makeTrie(pieces, all)) : (tries.always ??= makeTrie(pieces, always));
    const size = (id: number): number => Buffer.byteLength(pieces[id]!);
    const present = [...findAll(trie, text)].sort((a, b) => size(b) - size(a) || a - b);
    let fragments: Fragment[] = text === "" ? [] : [text];
    for (const id of present) fragments = cutOut(fragments, { id, piece: pieces[id]!, strip });
    return fragments;
  };
}

function makeTrie(pieces: readonly string[], ids: readonly number[]): Node {
  const root: Node = { next: new Map(), id: -1 };
  for (const id of ids) {
    let node = root;
    const piece = pieces[id]!;
    for (let i = 0; i < piece.length; i++) {
      const unit = piece.charCodeAt(i);
      let child = node.next.get(unit);
      if (child === undefined) node.next.set(unit, (child = { next: new Map(), id: -1 }));
      node = child;
    }
    node.id = id;
  }
  return root;
}

/** Every id whose piece occurs in the text, also where occurrences overlap. */
function findAll(root: Node, text: string): Set<number> {
  const present = new Set<number>();
  if (root.next.size === 0) return present;
  const mayStart = new Uint8Array(65_536);
  for (const unit of root.next.keys()) mayStart[unit] = 1;
  for (let start = 0; start < text.length; start++) {
    if (mayStart[text.charCodeAt(start)] === 0) continue;
    let node = root.next.get(text.charCodeAt(start));
    for (let at = start + 1; node !== undefined; at++) {
      if (node.id >= 0) present.add(node.id);
      node = at < text.length ? node.next.get(text.charCodeAt(at)) : undefined;
    }
  }
  return present;
}

interface Special {
  readonly id: number;
  readonly piece: string;
  readonly strip: StripRules;
}

function cutOut(fragments: readonly Fragment[], { id, piece, strip }: Special): Fragment[] {
  const cut: Fragment[] = [];
  for (const fragment of fragments) {
    if (typeof fragment === "number") {
      cut.push(fragment);
      continue;
    }
    let start = 0;
    for (let at = fragment.indexOf(piece); at >= 0; at = fragment.indexOf(piece, start)) {
      const end = strip.before.has(id) ? skipSpaceBack(fragment, start, at) : at;
      if (end > start) cut.push(fragment.slice(start, end));
      cut.push(id);
      start = at + piece.length;
      if (strip.after.has(id)) start = skipSpace(fragment, start);
    }
    if (start < fragment.length) cut.push(fragment.slice(start));
  }
  return cut;
}

/** C's `isspace`, which is all that llama.cpp strips. */
function isSpace(unit: number): boolean {
  return unit === 32 || (unit >= 9 && unit <= 13);
}

function skipSpace(text: string, start: number): number {
  let at = start;
  while (at < text.length && isSpace(text.charCodeAt(at))) at++;
  return at;
}

function skipSpaceBack(text: string, start: number, end: number): number {
  let at = end;
  while (at > start && isSpace(text.charCodeAt(at - 1))) at--;
  return at;
}
