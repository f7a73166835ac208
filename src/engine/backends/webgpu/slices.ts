/**
 * A long prompt in parts of some dispatches each, submitted between the decode steps of other slots. It uses the pass
 * for many rows, which has separate memory; until it ends, all other runs use the pass for few rows.
 */
import { assert } from "../../../base/index.ts";
import type { Rows, SlicedRun, SlicedRuns } from "../../program/backend.ts";

/** Dispatches of a part before their duration is known: about a layer. */
const FIRST_DISPATCHES = 12;
/** Weight of a new duration in the mean. */
const NEWEST = 0.5;

/** An uploaded run. */
export interface Uploaded {
  /** Number of its dispatches. */
  readonly end: number;
  /** The first place from `at` on where a part may end. */
  cutFrom(at: number): number;
  /** Runs dispatches `first` … `end − 1`, and waits for the device. @param ms expected duration */
  part(range: { readonly first: number; readonly end: number }, ms: number): Promise<void>;
  /** Runs the dispatches from `first` on, and returns the wanted logits. */
  finish(first: number): Promise<Float32Array>;
}

interface SliceParts {
  readonly rowsMax: number;
  /** Runs of at most this many rows are not divided, nor are runs whose results are all wanted. */
  readonly gemvRows: number;
  run(batch: readonly Rows[]): Promise<Float32Array>;
  upload(rows: Rows): Promise<Uploaded>;
  /** Called with true when a divided run begins, with false when it ends. */
  onDivided(isDivided: boolean): void;
}

export function makeSlices(parts: SliceParts): SlicedRuns {
  const { rowsMax, gemvRows, onDivided } = parts;
  const pace: DispatchPace = { ns: undefined };
  return {
    rowsMax,
    start(rows) {
      const count = rows.tokens.length;
      assert(count <= rowsMax, `a run of ${count} rows in parts: expected at most ${rowsMax}`);
      if (count <= gemvRows || rows.logits === "all") return undivided(rows, parts);
      onDivided(true);
      return divided(rows, parts, pace);
    },
  };
}

/** The mean duration of a dispatch in runs so far; undefined before the first. */
interface DispatchPace {
  ns: number | undefined;
}

function divided(rows: Rows, { upload, onDivided }: SliceParts, pace: DispatchPace): SlicedRun {
  let uploaded: Uploaded | undefined;
  let [first, longestNs] = [0, 0];
  const timed = async <T>(count: number, work: () => Promise<T>): Promise<T> => {
    const startedMs = performance.now();
    const result = await work();
    const ns = (performance.now() - startedMs) * 1e6;
    longestNs = Math.max(longestNs, ns);
    const mean = pace.ns ?? ns / count;
    pace.ns = mean + NEWEST * (ns / count - mean);
    return result;
  };
  const next = async (budgetNs: number): Promise<Float32Array | undefined> => {
    const run = (uploaded ??= await upload(rows));
    const fits = pace.ns === undefined ? FIRST_DISPATCHES : Math.floor(budgetNs / pace.ns);
    const range = { first, end: Math.min(run.end, run.cutFrom(first + Math.max(1, fits))) };
    const count = range.end - range.first;
    if (range.end < run.end) {
      await timed(count, () => run.part(range, (count * (pace.ns ?? 0)) / 1e6));
      first = range.end;
      return undefined;
    }
    const logits = await timed(count, () => run.finish(range.first));
    onDivided(false);
    return logits;
  };
  return {
    get longestNs() {
      return longestNs;
    },
    next: (budgetNs) =>
      next(budgetNs).catch((error: unknown) => {
        onDivided(false);
        throw error;
      }),
    abandon: () => onDivided(false),
  };
}

function undivided(rows: Rows, { run }: SliceParts): SlicedRun {
  let longestNs = 0;
  return {
    get longestNs() {
      return longestNs;
    },
    async next() {
      const startedMs = performance.now();
      const logits = await run([rows]);
      longestNs = (performance.now() - startedMs) * 1e6;
      return logits;
    },
  };
}
