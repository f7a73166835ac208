/**
 * Sets of Unicode code points, and their form inside a JSON string in a grammar's notation (the EBNF of xgrammar,
 * `docs/` of mlc-ai/xgrammar).
 */

/** Sorted, disjoint, inclusive ranges of code points. */
export type CharSet = readonly (readonly [from: number, to: number])[];

const MAX_POINT = 0x10ffff;
const SURROGATES: CharSet = [[0xd800, 0xdfff]];

/** Characters that JSON strings must escape: controls, the quote and the backslash. */
export const ESCAPED: CharSet = [
  [0x00, 0x1f],
  [0x22, 0x22],
  [0x5c, 0x5c],
];

export const ASCII: CharSet = [[0x00, 0x7f]];
const BEYOND_ASCII: CharSet = [[0x80, MAX_POINT]];
const LISTED_MAX = 256;

export const DIGITS: CharSet = [[0x30, 0x39]];
export const WORD: CharSet = union(DIGITS, [
  [0x41, 0x5a],
  [0x5f, 0x5f],
  [0x61, 0x7a],
]);
/** `\s` of ECMAScript. */
export const SPACE: CharSet = [
  [0x09, 0x0d],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
];
/** Characters that `.` does not match. */
export const LINE_ENDS: CharSet = [
  [0x0a, 0x0a],
  [0x0d, 0x0d],
  [0x2028, 0x2029],
];

export function union(...sets: readonly CharSet[]): CharSet {
  const ranges = sets.flat().toSorted((a, b) => a[0] - b[0]);
  const out: [number, number][] = [];
  for (const [from, to] of ranges) {
    const last = out.at(-1);
    if (last && from <= last[1] + 1) last[1] = Math.max(last[1], to);
    else out.push([from, to]);
  }
  return out;
}

/** The complement of the set, without surrogates. */
export function complement(set: CharSet): CharSet {
  const out: [number, number][] = [];
  let next = 0;
  for (const [from, to] of union(set, SURROGATES)) {
    if (from > next) out.push([next, from - 1]);
    next = to + 1;
  }
  if (next <= MAX_POINT) out.push([next, MAX_POINT]);
  return out;
}

export const subtract = (set: CharSet, less: CharSet): CharSet => complement(union(complement(set), less));

export const charCount = (set: CharSet): number => set.reduce((sum, [from, to]) => sum + to - from + 1, 0);

/** A code point in a literal or a class of the grammar. */
export function grammarChar(point: number): string {
  if ((point >= 0x30 && point <= 0x39) || (point >= 0x41 && point <= 0x5a) || (point >= 0x61 && point <= 0x7a)) {
    return String.fromCharCode(point);
  }
  if (point <= 0xffff) return `\\u${point.toString(16).padStart(4, "0")}`;
  return `\\U${point.toString(16).padStart(8, "0")}`;
}

/** A literal of the grammar. */
export const literal = (text: string): string =>
  `"${Array.from(text, (c) => grammarChar(c.codePointAt(0)!)).join("")}"`;

/** The position of a pattern's texts in a grammar, which decides which characters must be escaped. */
export interface Spelling {
  readonly excluded: CharSet;
  /** Writes an excluded character; absent: such a character cannot be written. */
  readonly escape?: (char: string) => string;
}

export const IN_JSON: Spelling = { excluded: ESCAPED, escape: (char) => JSON.stringify(char).slice(1, -1) };

/**
 * One character of a set, inside a JSON string or elsewhere; undefined if no member can be written there. Members that
 * need an escape are omitted unless the set has no others: a narrower grammar, whose masks are far cheaper. Beyond
 * ASCII the library's classes are all or nothing (positive ones match bytes, negated ones ignore the exclusion), so up
 * to 256 such members are listed, and more count as all.
 */
export function charExpression(set: CharSet, { excluded, escape }: Spelling): string | undefined {
  const raw = subtract(set, excluded);
  if (raw.length === 0) return escape && choiceOf(pointsOf(set).map((point) => escape(String.fromCodePoint(point))));
  const ascii = subtract(raw, BEYOND_ASCII);
  const beyond = subtract(raw, ASCII);
  if (beyond.length === 0) return classOf(ascii);
  if (charCount(beyond) > LISTED_MAX) return negatedClass(subtract(ASCII, ascii));
  const listed = choiceOf(pointsOf(beyond).map((point) => String.fromCodePoint(point)));
  return ascii.length === 0 ? listed : `(${classOf(ascii)} | ${listed})`;
}

/** A class of the grammar: any one character of a set of ASCII characters. */
export const classOf = (ascii: CharSet): string => `[${rangesOf(ascii)}]`;

/** Any one character except these ASCII characters. */
export const negatedClass = (ascii: CharSet): string => `[^${rangesOf(ascii)}]`;

const rangesOf = (set: CharSet): string =>
  set.map(([from, to]) => (from === to ? grammarChar(from) : `${grammarChar(from)}-${grammarChar(to)}`)).join("");

const choiceOf = (texts: readonly string[]): string => `(${texts.map(literal).join(" | ")})`;

const pointsOf = (set: CharSet): number[] =>
  set.flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, i) => from + i));
