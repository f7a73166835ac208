/** Decides whether a model's weights can stay in memory while it runs. */
import { availableMemory } from "../../../base/system.ts";

/** Bytes left for the process itself: its heap, activations, and pages of other files. */
const RESERVE = 128 * 2 ** 20;
/** Share of the memory that may be used, because other programs' needs change. */
const SHARE = 0.95;

/**
 * Bytes for weights. The file cache counts as free, and the limits of control groups apply.
 * @param taken bytes that will be allocated in addition
 * @param available bytes that the process can still allocate; default: as measured now
 */
export function roomForWeights(taken = 0, available: number = availableMemory()): number {
  return Math.max(0, SHARE * available - RESERVE - taken);
}

/**
 * True if this many bytes of weights fit in memory. Otherwise they are read from the file while the model runs.
 * @param taken bytes that will be allocated in addition
 */
export function fitsInMemory(
  bytes: number,
  { taken = 0, available }: { taken?: number | undefined; available?: number | undefined } = {},
): boolean {
  return bytes <= roomForWeights(taken, available);
}
