/** Retry delays: longer after every failure, spread at random, and not for ever. */

const FIRST_MS = 1000;
const LONGEST_MS = 300_000;

/** Work older than this is given up. */
export const MAX_AGE_MS = 24 * 3_600_000;

/**
 * Delay after a number of failures: doubles from one second to five minutes, minus a random half. A delay requested by
 * the other side is respected, up to the age at which work is given up.
 */
export function retryDelayMs(failures: number, random: () => number, askedMs = 0): number {
  const full = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(Math.max(0, failures - 1), 20));
  return Math.max(Math.ceil(Math.min(askedMs, MAX_AGE_MS)), Math.round(full * (0.5 + random() / 2)));
}
