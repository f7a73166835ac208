/**
 * Gives memory back while a process has nothing to do: after many short requests the collector has no reason to run,
 * and garbage of as many bytes as the process uses would stay for hours.
 */
import { heapSize } from "bun:jsc";

/** How often it looks. */
const EVERY_MS = 2000;
/** Of one core, below which a process has nothing to do. */
const IDLE_SHARE = 0.05;
/** The heap has grown so much since the last time, in bytes and as a share. */
const GROWN_BYTES = 2 * 2 ** 20;
const GROWN_SHARE = 0.1;

/** Looks now and then, and collects where that is worth while. Does not keep the process alive. */
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
