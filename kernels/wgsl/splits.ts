/**
 * The number of workgroups that share the context of one head of a row: otherwise a long context would use only a few
 * of a GPU's cores, one per head. The parts must then be joined by a separate dispatch, because WGSL does not order
 * workgroups within one. A short context is not split, which saves that dispatch.
 */
import type { Params } from "./dispatch.ts";

/** Positions that are never split: joining would take longer than reading them. */
const WHOLE_LEN = 256;
/** Minimum positions of a split: one tile of the kernel. */
const LEAST_LEN = 64;
/** More splits do not use a GPU better. */
const SPLITS_MAX = 64;

/** Parameters of the kernels' `split_len`, for at most `seen` positions. */
export const splitParams = (seen: number): Params => ({
  wholeLen: WHOLE_LEN,
  leastLen: LEAST_LEN,
  splits: splitsOf(seen),
});

/** Maximum splits of a row with `seen` positions; never less for a longer context. */
export function splitsOf(seen: number): number {
  return seen <= WHOLE_LEN ? 1 : Math.min(SPLITS_MAX, Math.ceil(seen / LEAST_LEN));
}
