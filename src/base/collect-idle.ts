/**
 * Collects garbage while a process is idle. After many short requests the collector has no reason to run, and garbage
 * as large as the memory in use would stay for hours.
 */
import { heapSize } from "bun:jsc";

/** Time between two checks. */
const EVERY_MS = 2000;
/** Share of one core; a process that uses less is idle. */
const IDLE_SHARE = 0.05;
/** Collects once the heap has grown by this many bytes and by this share since the last collection. */
const GROWN_BYTES = 2 * 2 ** 20;
const GROWN_SHARE = 0.1;

/** Checks regularly, and collects where that is worthwhile. Does not keep the process alive. */
export function collectWhenIdle(everyMs: number = EVERY_MS): void {
  let used = process.cpuUsage();
  let kept = 0;
  const look = (): void => {
    const { user, system } = process.cpuUsage(used);
    used = process.cpuUsage();
    const isIdle = user + system < IDLE_SHARE * everyMs * 1000;
    if (!isIdle || heapSize() < kept * (1 + GROWN_SHARE) + GROWN_BYTES) return;
    Bun.gc(true);
    kept = heapSize();
  };
  setInterval(look, everyMs).unref();
}
