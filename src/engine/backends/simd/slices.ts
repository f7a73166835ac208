/** Prompt runs in parts: other passes may run between two records, because these runs have separate buffers. */
import { assert } from "../../../base/index.ts";
import type { SlicedRuns, StateRows } from "../../program/backend.ts";
import { roundsOf } from "./chosen-rows.ts";
import type { SlotStates } from "./checkpoints.ts";
import { growingBlock, type Memory } from "./memory.ts";
import type { Lowered, Passes } from "./passes.ts";
import { remembers } from "./remembered.ts";
import { passesOf, type PassRows, type RowLimits } from "./rows.ts";

/** Rows per run: enough for full speed of products, few enough for small buffers. */
export const SLICED_ROWS = 256;
/** Weight of a new measurement of a record. */
const NEWEST = 0.5;

export interface SliceOptions {
  readonly memory: Memory;
  readonly passes: Passes;
  readonly limits: RowLimits;
  readonly slotStates: SlotStates | undefined;
  /** Values per result. */
  readonly dim: number;
  /** Checks rows like every run. */
  readonly prepare: (batch: readonly StateRows[]) => void;
  /** Computes memories in parts, before the rows that attend to them; undefined: no row has one. */
  readonly remember: ((batch: readonly StateRows[]) => Iterable<void>) | undefined;
  /** Lowers the program with separate buffers. @param rounds as for `lower` */
  readonly lower: (rounds: number, remembers: boolean) => Lowered;
  /** Throws if a result is NaN or infinite. */
  readonly check: (values: Float32Array) => void;
}

interface Sliced {
  readonly lowered: Lowered;
  /** By cut: nanoseconds per row of the records before it. */
  readonly perRow: number[];
}

export function makeSlices(options: SliceOptions): SlicedRuns {
  const { memory, passes, limits, slotStates, dim, prepare, remember, lower, check } = options;
  const made = new Map<string, Sliced>();
  const results = growingBlock(memory, "results");
  return {
    rowsMax: SLICED_ROWS,
    start({ logits, ...rows }) {
      const batch = [{ ...rows, states: logits }];
      prepare(batch);
      const memories = remember?.(batch)[Symbol.iterator]();
      const pass = onlyPass(batch, { ...limits, maxRows: SLICED_ROWS });
      const place = results(dim * 4 * Math.max(1, pass.wanted.length));
      const key = `${roundsOf(pass)} ${remembers(pass)}`;
      const sliced = made.get(key) ?? { lowered: lower(roundsOf(pass), remembers(pass)), perRow: [] };
      made.set(key, sliced);
      const { lowered, perRow } = sliced;
      const count = pass.tokens.length;
      let [part, longestNs] = [0, 0];
      /** Runs up to the next cut. */
      const step = (): number => {
        const startedMs = performance.now();
        const from = part === 0 ? 0 : lowered.cuts[part - 1]!;
        passes.run(pass, lowered, { ...place, dim }, { from, to: lowered.cuts[part]! });
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
          const startedMs = performance.now();
          while (memories && !memories.next().done)
            if ((performance.now() - startedMs) * 1e6 > budgetNs / 2) return undefined; // the next part takes as long
          for (let spent = step(); part < lowered.cuts.length; spent += step()) {
            if (spent + (perRow[part] ?? 0) * count > budgetNs) return undefined;
          }
          slotStates?.ran(batch);
          const out = new Float32Array(place.view.buffer, place.view.byteOffset, pass.wanted.length * dim);
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
