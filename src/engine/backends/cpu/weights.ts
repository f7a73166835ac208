/**
 * Weights as float32, for the reference backend. Matrices are unpacked once, on first use, within a budget; beyond it,
 * a few rows are unpacked at each use.
 */
import { assert } from "../../../base/index.ts";
import type { WeightSource } from "../../program/backend.ts";
import { makeRowChange, withChanges, type RowChange } from "../../program/low-rank.ts";
import { weightsOf } from "../../program/describe.ts";
import type { Step, Weight } from "../../program/step.ts";
import { unpackRows } from "../../program/unpack.ts";

/** Bytes of cached float32 copies: the whole of a 250 M parameter model. Larger models run, but slower. */
const CACHE_BYTES_MAX = 1024 ** 3;
/** Rows unpacked at a time. */
export const PANEL_ROWS = 64;

export interface WeightReader {
  /** Bytes of all cached copies once every weight has been used. */
  readonly cacheBytes: number;
  /**
   * Rows `first` … `first + count − 1` of one stacked matrix, (count, inDim), times its factor, without low-rank
   * changes. Valid until the next call: it may be scratch. At most PANEL_ROWS rows.
   */
  panel(weight: Weight, at: { expert: number; first: number; count: number }): Float32Array;
  /** One row of a table, (inDim), with its factor and its low-rank changes applied. Valid until the next call. */
  row(table: Weight, index: number): Float32Array;
  /** Releases the copies. */
  release(): void;
}

export function makeWeightReader(steps: readonly Step[], source: WeightSource, budget = CACHE_BYTES_MAX): WeightReader {
  const kept = new Map<Weight, (Float32Array | undefined)[]>();
  let cacheBytes = 0;
  // embedding tables are read row by row
  const read = steps.flatMap((step) => weightsOf(step, "matrix", "experts", "router", "vector"));
  for (const weight of read.flatMap(withChanges)) {
    const bytes = 4 * weight.inDim * weight.outDim * weight.experts;
    if (kept.has(weight) || cacheBytes + bytes > budget) continue;
    kept.set(weight, []);
    cacheBytes += bytes;
  }
  const changes = new Map<Weight, RowChange>();
  let scratch = new Float32Array(0);

  const reader: WeightReader = {
    cacheBytes,
    row(table, index) {
      const row = reader.panel(table, { expert: 0, first: index, count: 1 });
      if (!table.lowRank) return row;
      const change = changes.get(table) ?? makeRowChange(table, source);
      changes.set(table, change);
      const changed = row.slice();
      change(changed, index);
      return changed;
    },
    panel(weight, { expert, first, count }) {
      assert(count <= PANEL_ROWS && first + count <= weight.outDim, `rows ${first} + ${count} of '${weight.name}'`);
      const { inDim } = weight;
      const copies = kept.get(weight);
      if (copies) {
        const whole = (copies[expert] ??= unpackRows(source, weight, {
          expert,
          first: 0,
          out: new Float32Array(inDim * weight.outDim),
        }));
        return whole.subarray(first * inDim, (first + count) * inDim);
      }
      if (scratch.length < count * inDim) scratch = new Float32Array(PANEL_ROWS * inDim);
      return unpackRows(source, weight, { expert, first, out: scratch.subarray(0, count * inDim) });
    },
    release: () => {
      kept.clear();
      changes.clear();
    },
  };
  return reader;
}
