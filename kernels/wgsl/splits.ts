/**
 * How many workgroups share what one head of a row sees: the reads of a long context would keep only a few of a GPU's
 * cores busy, one for each head. The parts must then be joined, which is a dispatch of its own: WGSL orders nothing
 * between workgroups of one dispatch, so the last of them cannot do it. A short context is not split, and saves it.
 */
import type { Params } from "./dispatch.ts";

/** Positions that are never split: joining would take longer than reading them. */
const WHOLE_LEN = 256;
/** Positions of a split at least: one tile of the kernel. */
const LEAST_LEN = 64;
/** More splits than these fill no GPU better. */
const SPLITS_MAX = 64;

/** Parameters of the kernels' `split_len`, where a row sees at most `seen` positions. */
export const splitParams = (seen: number): Params => ({
  wholeLen: WHOLE_LEN,
  leastLen: LEAST_LEN,
  splits: splitsOf(seen),
});

/** Splits of a row that sees `seen` positions, at most; never less for a row that sees more. */
export function splitsOf(seen: number): number {
  return seen <= WHOLE_LEN ? 1 : Math.min(SPLITS_MAX, Math.ceil(seen / LEAST_LEN));
}
