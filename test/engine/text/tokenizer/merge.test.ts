import { expect, test } from "bun:test";
import fc from "fast-check";
import { makeMergeScratch, mergeSymbols, type Merges } from "../../../../src/engine/text/tokenizer/merge.ts";

/** The definition of merging: join the best pair while there is one. */
function mergeSlowly({ find, rank, result }: Merges, input: readonly number[]): number[] {
  const symbols = [...input];
  for (;;) {
    let best = -1;
    for (let i = 0; i + 1 < symbols.length; i++) {
      const merge = find(symbols[i]!, symbols[i + 1]!);
      if (merge < 0) continue;
      if (best < 0 || rank[merge]! < rank[find(symbols[best]!, symbols[best + 1]!)]!) best = i;
    }
    if (best < 0) return symbols;
    symbols.splice(best, 2, result[find(symbols[best]!, symbols[best + 1]!)]!);
  }
}

/** Merges of letters 0…3 and their results, from a list of pairs; equal ranks for `ties`. */
function makeMerges(pairs: readonly (readonly [number, number])[], ties: boolean): Merges {
  const table = new Map<string, number>();
  pairs.forEach(([left, right], merge) => table.set(`${left} ${right}`, table.get(`${left} ${right}`) ?? merge));
  return {
    find: (left, right) => table.get(`${left} ${right}`) ?? -1,
    rank: Int32Array.from(pairs.keys(), (merge) => (ties ? merge >> 1 : merge)),
    result: Int32Array.from(pairs.keys(), (merge) => 4 + merge),
  };
}

test("merging by scan and by heap gives the definition's result, also for equal ranks", () => {
  const scratch = makeMergeScratch();
  const pairs = fc.array(fc.tuple(fc.nat(7), fc.nat(7)), { minLength: 12, maxLength: 40 });
  const short = fc.array(fc.nat(3), { maxLength: 24 });
  const long = fc.array(fc.nat(3), { minLength: 25, maxLength: 120 });
  fc.assert(
    fc.property(pairs, fc.oneof(short, long), fc.boolean(), (list, input, ties) => {
      const merges = makeMerges(list, ties);
      const symbols = Int32Array.from(input);
      const count = mergeSymbols(merges, symbols, symbols.length, scratch);
      expect([...symbols.subarray(0, count)]).toEqual(mergeSlowly(merges, input));
    }),
    { seed: 5, numRuns: 3000 },
  );
});
