/**
 * How many prompt tokens a run takes, as measured: few enough that nobody who decodes meanwhile waits much longer for
 * the next token than without, and that a cancelled request ends soon. How a prompt is cut never changes its numbers.
 */
import type { ScheduleLimits, Work } from "./scheduler.ts";

/** Of the time between two tokens of others, a piece of a prompt between them may take so many times as much. */
const SHARED_SHARE = 1.5;
/** A run takes so long at most: nothing is heard meanwhile. */
const ALONE_NS = 1e9;
/** Before anything is measured. */
const FIRST = { alone: 128, shared: 32 } as const;
/** Fewer tokens cost as much as so many. */
const FEWEST = 8;
/** Nor fewer while nobody waits: weights are unpacked for each run, which costs as much as forty tokens. */
const FEWEST_ALONE = 32;
/** How fast a size follows what was measured. */
const GROWTH = { least: 0.5, most: 4 } as const;
/** How much a new measurement of a decode step counts. */
const NEWEST = 0.3;

export interface Pace {
  readonly limits: ScheduleLimits;
  /** How long a run goes on. @param isShared whether others wait for their next token */
  budgetNs(isShared: boolean): number;
  /** @param ns of the run, or of its longest part where it may be divided */
  took(work: Work, ns: number, isShared: boolean): void;
}

/** @param most what a run may take however fast it is */
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
      /** A piece so long that it takes that time. The end of a prompt says little, but that it took too long. */
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
