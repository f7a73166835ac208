/**
 * The search for a device's fastest kernels: changes one number at a time, and keeps a change if it is faster by a
 * margin. A tuning is only accepted if its results agree with the plain kernels'.
 */
import {
  AppError,
  attendsByMatrix,
  checkNotCancelled,
  fits,
  formatTuning,
  PLAIN,
  SIZES,
  type Tuning,
} from "../../../base/index.ts";
import { LOADS16 } from "../../../../kernels/wgsl/loads16.ts";
import type { QuantName } from "../../formats/quant/index.ts";
import type { Device } from "./device.ts";
import { Trial, type ShapeClass, type TrialKind } from "./trial.ts";

/** No stage of a search begins once trials have taken this long; compiling does not count. */
const BUDGET_MS = 1500;
/** Minimum time of one measurement: some devices' clocks have steps of 0.1 ms. */
const MEASURED_MS = 4;
const REPEATS_MAX = 64;
const SAMPLES = 3;
/** A change is kept if it is below this share of the previous time. */
const FASTER = 0.97;
/** Maximum error for tunings in float32 or float16, and for tunings that round x to 8 bits. */
const NMSE_MAX = { exact: 1e-6, fast: 1e-4 };

/** The fastest kernels whose results are as exact as float32, and the fastest of all. */
export interface Tunings {
  readonly exact: Tuning;
  readonly fast: Tuning;
  /** Number of finished stages; a later search continues after them. */
  readonly stages: number;
  /** Kernels that were fastest, but whose results were wrong on this device, as `q4_K: columns=8,…`. */
  readonly wrong?: readonly string[];
  /** Other block types than the searched one whose results were compared, too. */
  readonly checked?: readonly QuantName[];
}

/** The stages of a search before the last: changes to try, in order. Each modifies the best so far. */
const CHANGES: readonly { kind: TrialKind; changes: readonly Partial<Tuning>[] }[] = [
  { kind: "gemv", changes: [{ loads16: true }] }, // first, because the best sizes depend on it
  { kind: "gemv", changes: SIZES.columns.map((columns) => ({ columns })) },
  { kind: "gemv", changes: SIZES.threads.map((threads) => ({ threads })) },
  {
    kind: "gemm",
    changes: [32, 64].flatMap((tileRows) => SIZES.tileColumns.map((tileColumns) => ({ tileRows, tileColumns }))),
  },
  { kind: "gemm", changes: [{ f16: true }] },
  { kind: "gemm", changes: [{ double: true }] },
];
/** The last stage, for few rows. Rounding x costs each workgroup the same, so more columns help. */
const PACKED_CHANGES: readonly Partial<Tuning>[] = [
  { packed: true },
  { packed: true, columns: 8 },
  { packed: true, threads: 32 },
  { packed: true, threads: 32, columns: 8 },
];

/** The last stage, for many rows: weights are unpacked once for all rows of a tile. */
const MATRIX_CHANGES: readonly Partial<Tuning>[] = [32, 64, 128].flatMap((tileRows) =>
  [false, true].map((double) => ({ matrix: true, tileRows, tileColumns: 64, double })),
);

export const STAGES = CHANGES.length + 1;

export interface TuneOptions {
  readonly signal?: AbortSignal | undefined;
  readonly budgetMs?: number;
  /** The result of a search that ended early. */
  readonly from?: Tunings | undefined;
}

/**
 * Searches for about two seconds, and the time that the driver takes to compile. Throws `cancelled`, or `too_large` if
 * there is no room for trials.
 */
export async function searchTunings(device: Device, shape: ShapeClass, options: TuneOptions = {}): Promise<Tunings> {
  const trial = await Trial.make(device, shape);
  try {
    const search = new Search(device, trial, options);
    const { wrong, onWrong } = noteWrong(shape.quant, options.from);
    let { exact, stages } = options.from ?? { exact: PLAIN, stages: 0 };
    for (; stages < CHANGES.length && search.hasTime(); stages++) {
      const { kind, changes } = CHANGES[stages]!; // the loop's condition bounds it
      const possible = changes.filter(({ loads16 }) => !loads16 || LOADS16[shape.quant]);
      exact = await search.fastest(kind, exact, possible);
    }
    exact = await checkedOr(PLAIN, trial, { tuning: exact, nmseMax: NMSE_MAX.exact, onWrong });
    if (stages < CHANGES.length || !search.hasTime()) return { exact, fast: exact, stages, ...wrong() };
    const packed = await search.fastest("gemv", exact, LOADS16[shape.quant] ? PACKED_CHANGES : []);
    let fast = await checkedOr(exact, trial, { tuning: packed, nmseMax: NMSE_MAX.fast, onWrong });
    const matrix = await search.fastest("gemm", fast, MATRIX_CHANGES);
    fast = await checkedOr(fast, trial, { tuning: matrix, nmseMax: NMSE_MAX.fast, onWrong });
    return { exact, fast, stages: STAGES, ...wrong() };
  } finally {
    trial.destroy();
  }
}

/** Collects wrong kernels of a block type, after the ones found before. */
function noteWrong(quant: QuantName, before: Pick<Tunings, "wrong"> | undefined) {
  const all = [...(before?.wrong ?? [])];
  return {
    onWrong: (tuning: Tuning) => void all.push(`${quant}: ${formatTuning(tuning)}`),
    wrong: (): Pick<Tunings, "wrong"> => (all.length > 0 ? { wrong: all } : {}),
  };
}

/** Compares the results for further block types: kernels that are wrong for one of them are not used. */
export async function checkedFor(
  device: Device,
  { dim, others = [] }: ShapeClass,
  { checked = [], ...tunings }: Tunings,
): Promise<Tunings> {
  let { exact, fast } = tunings;
  let found: Pick<Tunings, "wrong"> = tunings;
  for (const quant of others.filter((each) => !checked.includes(each))) {
    const trial = await Trial.make(device, { quant, dim }, true);
    const { wrong, onWrong } = noteWrong(quant, found);
    try {
      const compared = [PLAIN, exact, fast];
      await Promise.all((["gemv", "gemm", "experts"] as const).map((kind) => trial.compile(kind, compared))); // at once
      exact = await checkedOr(PLAIN, trial, { tuning: exact, nmseMax: NMSE_MAX.exact, onWrong });
      fast = await checkedOr(exact, trial, { tuning: fast, nmseMax: NMSE_MAX.fast, onWrong });
      found = wrong();
    } finally {
      trial.destroy();
    }
  }
  return { ...tunings, exact, fast, ...found, checked: [...new Set([...checked, ...others])] };
}

/** Keeps the remaining time of a search. */
class Search {
  readonly #device: Device;
  readonly #trial: Trial;
  readonly #signal: AbortSignal | undefined;
  #leftMs: number;
  readonly #repeats: Partial<Record<TrialKind, number>> = {};

  constructor(device: Device, trial: Trial, { signal, budgetMs = BUDGET_MS }: TuneOptions) {
    this.#device = device;
    this.#trial = trial;
    this.#signal = signal;
    this.#leftMs = budgetMs;
  }

  hasTime(): boolean {
    return this.#leftMs > 0;
  }

  /** `best`, or the fastest of its changes that the device can run. */
  async fastest(kind: TrialKind, best: Tuning, changes: readonly Partial<Tuning>[]): Promise<Tuning> {
    const others = changes.map((change) => ({ ...best, ...change }));
    const possible = others.filter((tuning) => !isSame(tuning, best) && canRun(this.#device, tuning));
    await this.#trial.compile(kind, [best, ...possible]);
    let found = best;
    let bestMs = await this.#measure(kind, best);
    for (const tuning of possible) {
      if (bestMs === undefined) break;
      const ms = await this.#measure(kind, tuning);
      if (ms === undefined || ms > FASTER * bestMs) continue;
      [found, bestMs] = [tuning, ms];
    }
    return found;
  }

  /** Milliseconds of a run, the best of some; undefined: the device refuses the kernel. */
  async #measure(kind: TrialKind, tuning: Tuning): Promise<number | undefined> {
    checkNotCancelled(this.#signal);
    const startedMs = performance.now();
    try {
      await this.#trial.time(kind, tuning, 1); // warms up: a driver compiles or clears at first use
      const repeats = (this.#repeats[kind] ??= repeatsFor(await this.#trial.time(kind, tuning, 1)));
      const times: number[] = [];
      for (let i = 0; i < SAMPLES; i++) times.push((await this.#trial.time(kind, tuning, repeats)) / repeats);
      return Math.min(...times);
    } catch (error) {
      if (error instanceof AppError && error.code === "unsupported") return undefined;
      throw error;
    } finally {
      this.#leftMs -= performance.now() - startedMs;
    }
  }
}

const repeatsFor = (ms: number): number => Math.max(1, Math.min(REPEATS_MAX, Math.ceil(MEASURED_MS / ms)));

const isSame = (a: Tuning, b: Tuning): boolean =>
  Object.entries(a).every(([key, value]) => b[key as keyof Tuning] === value);

/** Returns whether a device has the features of a tuning. */
export function canRun({ facts, gpu, subgroups, matrix }: Device, tuning: Tuning): boolean {
  if ((tuning.f16 && !gpu.features.has("shader-f16")) || (tuning.matrix && !matrix)) return false;
  if (tuning.attention && !attendsByMatrix(matrix)) return false;
  return fits(tuning, { limits: facts.limits, subgroups, matrix });
}

/** `tuning` if its results equal the plain kernels'; `other`, after a call of `onWrong`, if a driver miscompiles it. */
export async function checkedOr(
  other: Tuning,
  trial: Pick<Trial, "results">,
  { tuning, nmseMax, onWrong }: { tuning: Tuning; nmseMax: number; onWrong?(tuning: Tuning): void },
): Promise<Tuning> {
  if (isSame(tuning, other)) return other;
  for (const kind of ["gemv", "gemm", "experts"] as const) {
    const [expected, got] = [await trial.results(kind, PLAIN), await trial.results(kind, tuning)];
    const error = expected.reduce((sum, value, i) => sum + (value - got[i]!) ** 2, 0);
    const power = expected.reduce((sum, value) => sum + value ** 2, 0);
    const most = kind === "gemv" ? nmseMax : NMSE_MAX.exact;
    if (power > 0 && error <= most * power) continue;
    onWrong?.(tuning); // also refuses NaN
    return other;
  }
  return tuning;
}
