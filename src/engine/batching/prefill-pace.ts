/**
 * Sizes prompt chunks by measurement: small enough that decoding sequences wait little longer for their next token, and
 * that a cancelled request ends soon. On a CPU, the division of a prompt never changes its results; on a GPU, pieces of
 * at most 32 rows run on other kernels, which add in another order.
 */
import type { ScheduleLimits, Work } from "./scheduler.ts";

/** Time of a prompt chunk between two steps of other sequences, relative to the time between their tokens. */
const SHARED_SHARE = 1.5;
/** Maximum time of a run, because messages wait meanwhile. */
const ALONE_NS = 1e9;
/** Sizes before the first measurement. */
const FIRST = { alone: 128, shared: 32 } as const;
/** Fewer tokens cost the same. */
const FEWEST = 8;
/** Minimum tokens while no sequence waits: unpacking the weights in each run costs as much as forty tokens. */
const FEWEST_ALONE = 32;
/** Limits on the change of a size per measurement, as factors. */
const GROWTH = { least: 0.5, most: 4 } as const;
/** Weight of a new measurement of a decode step. */
const NEWEST = 0.3;

export interface Pace {
  readonly limits: ScheduleLimits;
  /** Time budget of a run. @param isShared other sequences wait for their next token */
  budgetNs(isShared: boolean): number;
  /** @param ns duration of the run, or of its longest part if it is divisible */
  took(work: Work, ns: number, isShared: boolean): void;
}

/** @param most maximum size of a run, however fast it is */
export function makePace(most: ScheduleLimits): Pace {
  const fit = (size: number, { limit, fewest }: { limit: number; fewest: number }): number => {
    const even = size > FEWEST ? Math.floor(size / FEWEST) * FEWEST : size;
    return Math.max(1, Math.min(limit, Math.max(fewest, even)));
  };
  const fitAlone = (size: number): number => fit(size, { limit: most.chunkAlone, fewest: FEWEST_ALONE });
  const fitShared = (size: number): number => fit(size, { limit: most.chunkShared, fewest: FEWEST });
  let alone = fitAlone(FIRST.alone);
  let shared = fitShared(FIRST.shared);
  let decodeNs: number | undefined;
  const budgetNs = (isShared: boolean): number =>
    isShared && decodeNs !== undefined ? SHARED_SHARE * decodeNs : ALONE_NS;
  return {
    get limits() {
      return { chunkAlone: alone, chunkShared: shared };
    },
    budgetNs,
    took({ kind, rows }, ns, isShared) {
      if (kind === "decode") {
        decodeNs = decodeNs === undefined ? ns : decodeNs + NEWEST * (ns - decodeNs);
        return;
      }
      const count = rows.reduce((sum, { tokens }) => sum + tokens.length, 0);
      /** The chunk size that takes the budgeted time. The short end of a prompt counts only if it took too long. */
      const next = (size: number): number => {
        const budget = budgetNs(isShared);
        const growth = Math.max(GROWTH.least, Math.min(GROWTH.most, budget / Math.max(1, ns)));
        return count >= size - 1 || ns > budget ? Math.floor(count * growth) : size;
      };
      if (isShared) shared = fitShared(next(shared));
      else alone = fitAlone(next(alone));
    },
  };
}
