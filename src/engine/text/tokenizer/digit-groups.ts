/**
 * Splits numbers into groups of three digits from the right. Tokenizers express it with a lookahead to the end of the
 * number, which takes quadratic time on long ones; these functions take linear time.
 */

/** The places to split a piece: UTF-16 offsets, ascending. */
export type Cut = (piece: string) => number[];

/** SuperBPE, `(?=(\d{3})+(?!\d))`: before every full group. */
export const betweenThrees: Cut = (piece) => {
  const cuts: number[] = [];
  for (const { 0: run, index } of piece.matchAll(/\d+/g)) {
    for (let at = index + (run.length % 3); at < index + run.length; at += 3) cuts.push(at);
  }
  return cuts;
};

/**
 * AFMoE and Tiny Aya: after every group, the short one first. Text before a number stays with its first group, as in
 * `unicode_regex_split_custom_afmoe` in unicode.cpp; a later stage splits it off.
 */
export const afterThrees: Cut = (piece) => {
  const cuts: number[] = [];
  for (const { 0: run, index } of piece.matchAll(/\p{N}+/gu)) {
    const digits = [...run]; // some digits have two UTF-16 units
    let at = index;
    for (let i = 0; i < digits.length; i++) {
      at += digits[i]!.length;
      if ((digits.length - i - 1) % 3 === 0) cuts.push(at);
    }
  }
  return cuts;
};
