/** Waits for a slow download. */
import { pause } from "./retry.ts";

const INTERVAL_MS = 250;
const SLOW_BYTES_PER_MS = 200_000;

/**
 * Waits until a download was slow for `times` intervals of 250 ms, in a row or not; slow: less than 200 MB/s. Returns
 * early on abort. `completed` returns the bytes received so far.
 */
export async function untilSlow(times: number, completed: () => number, signal: AbortSignal): Promise<void> {
  for (let left = times; left > 0 && !signal.aborted;) {
    const [before, beganMs] = [completed(), performance.now()];
    await pause(INTERVAL_MS, signal);
    if (completed() - before < SLOW_BYTES_PER_MS * (performance.now() - beganMs)) left--;
  }
}
