/**
 * Splits text at its special tokens, longest first, like `tokenizer_st_partition` in llama-vocab.cpp. That function
 * searches the text once per special token; here one walk over a trie finds the ones that occur (Gemma has 6,000), and
 * only those are split out.
 */
import { utf8Length } from "../utf8.ts";
import { AppError } from "../../../base/index.ts";
import { CONTROL, UNKNOWN, USER_DEFINED } from "./special-tokens.ts";
import type { TextSegment } from "./tokenizer.ts";
import { PIECES_KEY, type Vocabulary } from "./vocabulary.ts";

/** Text still to be encoded, or the id of a special token. */
type Fragment = string | number;

/** The special tokens that strip the white space next to them. */
export interface StripRules {
  readonly before: ReadonlySet<number>;
  readonly after: ReadonlySet<number>;
}

/**
 * Maximum UTF-16 units of all special tokens together; speech models have 65,536 tokens `<custom_token_N>`, 1.3 M
 * units.
 */
const MAX_SPECIAL_UNITS = 2 ** 21;

/** Node 0 is the root. */
interface Trie {
  /** node · 65,536 + UTF-16 unit → child */
  readonly edges: Map<number, number>;
  /** (nodes) the token that ends here, or -1 */
  readonly ids: number[];
  /** (UTF-16 units) 1 if a piece begins with it, which is rare */
  readonly begins: Uint8Array;
}

export interface Partition {
  /**
   * User-defined tokens are always split out; control and unknown ones if `parseSpecial` and their segment allow it.
   */
  partition(segments: readonly TextSegment[], parseSpecial: boolean): Fragment[];
  /**
   * Ranges of control and unknown tokens in a text, including overlapping ones, and a possible beginning of one at its
   * end.
   */
  findControl(text: string): { start: number; end: number }[];
}

/** Throws `bad_file` if special tokens are longer than any model needs. */
export function makePartition({ pieces, attributes }: Vocabulary, strip: StripRules): Partition {
  const mask = CONTROL | UNKNOWN | USER_DEFINED;
  const all: number[] = [];
  for (let id = 0; id < pieces.length; id++) if ((attributes[id]! & mask) !== 0) all.push(id);
  const units = all.reduce((sum, id) => sum + pieces[id]!.length, 0);
  if (units > MAX_SPECIAL_UNITS) {
    throw new AppError(
      "bad_file",
      `metadata '${PIECES_KEY}': expected special tokens of ${MAX_SPECIAL_UNITS} units together, got ${units}`,
    );
  }
  const isControl = (id: number): boolean => (attributes[id]! & (CONTROL | UNKNOWN)) !== 0;
  const tries: { always?: Trie; all?: Trie; control?: Trie } = {}; // made at first use
  const cut = (text: string, parseSpecial: boolean): Fragment[] => {
    const trie = parseSpecial
      ? (tries.all ??= makeTrie(pieces, all))
      : (tries.always ??= makeTrie(
          pieces,
          all.filter((id) => !isControl(id)),
        ));
    const size = (id: number): number => utf8Length(pieces[id]!);
    const ids = new Set<number>();
    findAll(trie, text, (id) => ids.add(id));
    const present = [...ids].sort((a, b) => size(b) - size(a) || a - b);
    let fragments: Fragment[] = text === "" ? [] : [text];
    for (const id of present) fragments = cutOut(fragments, { id, piece: pieces[id]!, strip });
    return fragments;
  };
  return {
    partition(segments, parseSpecial) {
      const fragments: Fragment[] = [];
      for (const { text, control } of segments) {
        for (const fragment of cut(text.toWellFormed(), parseSpecial && control)) {
          const last = fragments.at(-1);
          if (typeof last === "string" && typeof fragment === "string") {
            fragments[fragments.length - 1] = last + fragment;
          } else fragments.push(fragment);
        }
      }
      return fragments;
    },
    findControl(text) {
      const trie = (tries.control ??= makeTrie(pieces, all.filter(isControl)));
      const found = findBegun(trie, text);
      findAll(trie, text, (id, start) => found.push({ start, end: start + pieces[id]!.length }));
      return found;
    },
  };
}

function makeTrie(pieces: readonly string[], tokens: readonly number[]): Trie {
  const edges = new Map<number, number>();
  const ids = [-1];
  const begins = new Uint8Array(65_536);
  for (const token of tokens) {
    const piece = pieces[token]!;
    if (piece !== "") begins[piece.charCodeAt(0)] = 1;
    let node = 0;
    for (let i = 0; i < piece.length; i++) {
      const edge = node * 65_536 + piece.charCodeAt(i);
      let child = edges.get(edge);
      if (child === undefined) {
        child = ids.push(-1) - 1;
        edges.set(edge, child);
      }
      node = child;
    }
    ids[node] = token;
  }
  return { edges, ids, begins };
}

/** Reports every occurrence of a piece, including overlapping ones. */
function findAll({ edges, ids, begins }: Trie, text: string, found: (id: number, start: number) => void): void {
  if (edges.size === 0) return;
  for (let start = 0; start < text.length; start++) {
    if (begins[text.charCodeAt(start)] === 0) continue;
    let node = edges.get(text.charCodeAt(start)); // the root is node 0, so its edges are units
    for (let at = start + 1; node !== undefined; at++) {
      if (ids[node]! >= 0) found(ids[node]!, start);
      node = at < text.length ? edges.get(node * 65_536 + text.charCodeAt(at)) : undefined;
    }
  }
}

/** The ends of a text that could be the beginning of a piece. */
function findBegun({ edges, ids }: Trie, text: string): { start: number; end: number }[] {
  const longest = ids.length; // no piece is longer than all pieces together
  const begun: { start: number; end: number }[] = [];
  for (let start = Math.max(0, text.length - longest); start < text.length; start++) {
    let node: number | undefined = 0;
    for (let at = start; node !== undefined && at < text.length; at++) {
      node = edges.get(node * 65_536 + text.charCodeAt(at));
    }
    if (node !== undefined) begun.push({ start, end: text.length });
  }
  return begun;
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

/** C's `isspace`: exactly what llama.cpp strips. */
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
