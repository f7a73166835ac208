/**
 * Keeps a waiting device from using a whole core. While an operation is pending, Dawn's binding for Node polls in a
 * callback that it passes to the global `setImmediate` again and again, half a million times a second. It reads that
 * global on every call into it, so only for the length of such a call the global is replaced by a slower function. All
 * other code keeps the original `setImmediate`. Pages have no such binding and need nothing.
 */

/** Time of polling without a pause: a readback of a small model's token takes some 0.1 ms. */
const EAGER_MS = 0.3;

/** Polls for the device's answers. */
export interface Pump {
  /** Makes a call that Dawn answers later, such as `mapAsync` or `popErrorScope`. */
  start<T>(call: () => T): T;
  /** Work was submitted: an answer may come soon. */
  kick(): void;
}

/** Polls without a pause shortly after each `kick`, and once per millisecond afterwards. */
export function makePump(): Pump {
  const { setImmediate: immediate, setTimeout: later } = globalThis;
  if (typeof immediate !== "function") return { start: (call) => call(), kick: () => {} };
  let eagerUntil = 0;
  const start = <T>(call: () => T): T => {
    const before = globalThis.setImmediate;
    globalThis.setImmediate = paced;
    try {
      return call();
    } finally {
      globalThis.setImmediate = before;
    }
  };
  const schedule = (run: (...args: unknown[]) => void, ...args: unknown[]): unknown => {
    const look = (): void => start(() => run(...args)); // requests its next turn
    return performance.now() < eagerUntil ? immediate(look) : later(look, 1);
  };
  const paced = Object.assign(schedule, immediate) as typeof immediate; // its result can be cleared in the same way
  return { start, kick: () => void (eagerUntil = performance.now() + EAGER_MS) };
}
