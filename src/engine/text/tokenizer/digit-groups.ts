/**
 * Splits numbers into groups of three digits from the right. Tokenizers express this with a lookahead to the end of the
 * number, which takes quadratic time for long numbers; these functions take linear time.
 */

/** The positions at which to split a piece: UTF-16 offsets, ascending. */
export type Cut = (piece: string) => number[];

/** SuperBPE, `(?=(\d{3})+(?!\d))`: splits before every full group of three digits. */
export const betweenThrees: Cut = (piece) => {
  const cuts: number[] = [];
  for (const { 0: run, index } of piece.matchAll(/\d+/g)) {
    for (let at = index + (run.length % 3); at < index + run.length; at += 3) cuts.push(at);
  }
  return cuts;
};

/**
 * AFMoE and Tiny Aya: splits after every group; the first group may be shorter. Text before a number stays with its
 * first group, as in `unicode_regex_split_custom_afmoe` in unicode.cpp; a later stage splits it off.
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
