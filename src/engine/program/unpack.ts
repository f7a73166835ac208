/** Unpacks rows of a weight matrix to float32. */
import { rowBytesOf } from "../formats/quant/blocks.ts";
import type { WeightSource } from "./backend.ts";
import type { Weight } from "./step.ts";
import { readRange } from "./weight-range.ts";

/** The first row; the number of rows follows from `out`, (rows, inDim). */
interface RowRange {
  readonly expert: number;
  readonly first: number;
  readonly out: Float32Array;
}

/** Fills `out` from row `first` of one stacked matrix, times its factor, and returns it. */
export function unpackRows(source: WeightSource, weight: Weight, { expert, first, out }: RowRange): Float32Array {
  const { quant, inDim } = weight;
  const rowBytes = rowBytesOf(weight);
  const row = expert * weight.tensorRows + weight.rowStart + first;
  const rows = out.length / inDim;
  quant.dequantize(readRange(source, weight.name, row * rowBytes, rows * rowBytes), out);
  const factor = weight.scale?.[expert];
  if (factor !== undefined) for (let i = 0; i < out.length; i++) out[i]! *= factor;
  return out;
}
