/**
 * Marks of strings whose length the sampler limits. The rule of such a string allows any length, and beside each
 * character its mark: control characters that no JSON has, around the limits.
 */

/** Least and most characters of a string. An escape counts as one. */
export interface LengthLimits {
  readonly min: number;
  readonly max: number;
}

const [BEGIN, END] = [1, 2];
/** Longer than any answer. */
const LENGTH_MAX = 2 ** 31;

const numbersOf = ({ min, max }: LengthLimits): string => [min, max].map((n) => Math.min(n, LENGTH_MAX)).join();

/** Returns whether only marks have this byte. */
export const isMarkByte = (byte: number): boolean => byte === BEGIN || byte === END;

/** A mark as an answer would have it. */
export const markText = (limits: LengthLimits): string =>
  String.fromCharCode(BEGIN) + numbersOf(limits) + String.fromCharCode(END);

/** The characters around marks, without limits. */
export const NO_MARK = String.fromCharCode(BEGIN, END);

/** A mark in the grammar's notation. */
export const markRule = (limits: LengthLimits): string => `"\\u000${BEGIN}${numbersOf(limits)}\\u000${END}"`;

const RULES = new RegExp(String.raw`"\\u000${BEGIN}(\d+),(\d+)\\u000${END}"`, "g");

/** The limits that a grammar has marks of. */
export function limitsIn(grammar: string): readonly LengthLimits[] {
  const found = new Map(Array.from(grammar.matchAll(RULES), ([rule, min, max]) => [rule, { min: +min!, max: +max! }]));
  return [...found.values()];
}
