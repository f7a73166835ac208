/** Low-rank changes of weights: code that backends share. `step.ts` defines them. */
import type { WeightSource } from "./backend.ts";
import type { Weight } from "./step.ts";
import { unpackRows } from "./unpack.ts";

/** Adds the changes to a row of a table, (inDim). */
export type RowChange = (row: Float32Array, index: number) => void;

/** A weight and the two halves of each of its changes. */
export const withChanges = (weight: Weight): Weight[] => [
  weight,
  ...[...(weight.lowRank ?? []), ...(weight.offered ?? [])].flatMap(({ a, b }) => [a, b]),
];

/** For tables that are read row by row, such as embeddings. Keeps a float32 copy of each `a`. */
export function makeRowChange({ inDim, lowRank = [] }: Weight, source: WeightSource): RowChange {
  const halves = lowRank.map(({ a, b }) => ({
    a: unpackRows(source, a, { expert: 0, first: 0, out: new Float32Array(a.outDim * inDim) }),
    b,
    shares: new Float32Array(b.inDim),
  }));
  return (row, index) => {
    const sums = Float64Array.from(row);
    for (const { a, b, shares } of halves) {
      for (const [k, share] of unpackRows(source, b, { expert: 0, first: index, out: shares }).entries()) {
        for (let i = 0; i < inDim; i++) sums[i]! += share * a[k * inDim + i]!;
      }
    }
    row.set(sums);
  };
}
