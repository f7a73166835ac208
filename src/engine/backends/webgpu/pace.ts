/**
 * Keeps a waiting device from burning a core. While something is pending, Dawn's binding for Node looks for answers in
 * a callback that it hands to the global `setImmediate` again and again, half a million times a second. It reads that
 * name anew each time, inside of a call into it: so for the length of such a call, and no longer, the name stands for
 * a slower one. Everyone else's `setImmediate` stays what it is. In a page there is none, and nothing to do.
 */

/** How long an answer is looked for without a pause: a readback of a small model's token takes some 0.1 ms. */
const EAGER_MS = 0.3;

/** Looks for the device's answers. */
export interface Pump {
  /** Makes a call that Dawn answers later: `mapAsync`, `popErrorScope` and their like. */
  start<T>(call: () => T): T;
  /** Work was submitted: an answer may be near. */
  kick(): void;
}

/** Looks without a pause for a moment after each `kick`, and once a millisecond after that. */
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
    const look = (): void => start(() => run(...args)); // which asks for its next turn
    return performance.now() < eagerUntil ? immediate(look) : later(look, 1);
  };
  const paced = Object.assign(schedule, immediate) as typeof immediate; // what it returns can be cleared alike
  return { start, kick: () => void (eagerUntil = performance.now() + EAGER_MS) };
}
