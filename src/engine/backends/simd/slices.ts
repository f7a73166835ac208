/** Runs of prompts in parts: between two records other passes may run, since these have buffers of their own. */
import { assert } from "../../../base/index.ts";
import type { SlicedRuns, StateRows } from "../../program/backend.ts";
import type { SlotStates } from "./checkpoints.ts";
import type { Block, Memory } from "./memory.ts";
import type { Passes } from "./passes.ts";
import type { Lowered } from "./records.ts";
import { passesOf, type PassRows, type RowLimits } from "./rows.ts";

/** Rows of a run: enough for products to be as fast as they get, few enough for buffers to stay small. */
export const SLICED_ROWS = 256;
/** How much a new measurement of a record counts. */
const NEWEST = 0.5;

export interface SliceOptions {
  readonly memory: Memory;
  readonly passes: Passes;
  readonly limits: RowLimits;
  readonly slotStates: SlotStates | undefined;
  /** Values of a result. */
  readonly dim: number;
  /** Checks rows as every run does. */
  readonly prepare: (batch: readonly StateRows[]) => void;
  /** Lowers the program with buffers of its own. */
  readonly lower: () => Lowered;
  /** Throws where a result is no number. */
  readonly check: (values: Float32Array) => void;
}

export function makeSlices(options: SliceOptions): SlicedRuns {
  const { memory, passes, limits, slotStates, dim, prepare, lower, check } = options;
  let made: { lowered: Lowered; results: Block } | undefined;
  const perRow: number[] = []; // by cut: nanoseconds of what ends there, for each row
  return {
    rowsMax: SLICED_ROWS,
    start({ logits, ...rows }) {
      const batch = [{ ...rows, states: logits }];
      prepare(batch);
      made ??= { lowered: lower(), results: memory.allocate(dim * 4, "results") };
      const { lowered, results } = made;
      const pass = onlyPass(batch, { ...limits, maxRows: SLICED_ROWS });
      const count = pass.tokens.length;
      assert(pass.wanted.length <= 1, "a run in parts has one result");
      let [part, longestNs] = [0, 0];
      /** Runs up to the next cut. */
      const step = (): number => {
        const startedMs = performance.now();
        const from = part === 0 ? 0 : lowered.cuts[part - 1]!;
        passes.run(pass, lowered, { ...results, dim }, { from, to: lowered.cuts[part]! });
        const ns = (performance.now() - startedMs) * 1e6;
        const known = perRow[part] ?? ns / count;
        perRow[part] = known + NEWEST * (ns / count - known);
        longestNs = Math.max(longestNs, ns);
        part++;
        return ns;
      };
      return {
        get longestNs() {
          return longestNs;
        },
        next(budgetNs) {
          for (let spent = step(); part < lowered.cuts.length; spent += step()) {
            if (spent + (perRow[part] ?? 0) * count > budgetNs) return undefined;
          }
          slotStates?.ran(batch);
          const out = new Float32Array(results.view.buffer, results.view.byteOffset, pass.wanted.length * dim);
          check(out);
          return out;
        },
      };
    },
  };
}

function onlyPass(batch: readonly StateRows[], limits: RowLimits): PassRows {
  const [pass, ...more] = passesOf(batch, limits);
  assert(pass && more.length === 0, `a run in parts of more than ${limits.maxRows} rows`);
  return pass;
}
