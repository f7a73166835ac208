/**
 * Keeps a waiting device from using a whole core. While an operation is pending, Dawn's binding for Node polls in a
 * callback that it passes to the global `setImmediate` again and again, half a million times a second. It reads that
 * global on every call into it, so only for the length of such a call the global is replaced by a slower function. All
 * other code keeps the original `setImmediate`. Pages have no such binding and need nothing.
 */

/** Duration of eager polling after a submit: the readback of a small model's token takes some 0.1 ms. */
const EAGER_MS = 0.3;
/** Eager polling begins at this share of a run's expected duration, and ends soon after it. */
const EXPECTED = { from: 0.9, until: 1.2 };
/** A timer set for less than this would be late. */
const TIMER_MS = 1.1;
/** Longer runs are not predicted to the millisecond: a late poll costs them little. */
const EXPECTED_MS_MAX = 100;
/** Weight of a new duration in the mean. */
const NEWEST = 0.3;

/** Polls for the device's answers. */
export interface Pump {
  /** Makes a call that Dawn answers later, such as `mapAsync` or `popErrorScope`. */
  start<T>(call: () => T): T;
  /** Work was submitted: an answer may come soon. @param ms its expected duration, if similar work ran before */
  kick(ms?: number): void;
}

/** Mean durations of runs by kind. */
export interface Durations<K> {
  /** Milliseconds; undefined before the first. */
  expected(kind: K): number | undefined;
  took(kind: K, ms: number): void;
}

export function makeDurations<K>(): Durations<K> {
  const known = new Map<K, number>();
  return {
    expected: (kind) => known.get(kind),
    took(kind, ms) {
      const mean = known.get(kind);
      known.set(kind, mean === undefined ? ms : mean + NEWEST * (ms - mean));
    },
  };
}

/**
 * Polls eagerly shortly after each `kick` and around the expected end of its work, and once per millisecond otherwise:
 * timers are up to 1.1 ms late, which is a fifth of a token on a fast GPU.
 */
export function makePump(): Pump {
  const { setImmediate: immediate, setTimeout: later } = globalThis;
  if (typeof immediate !== "function") return { start: (call) => call(), kick: () => {} };
  let eagerUntil = 0;
  let [from, until] = [0, 0]; // around the expected end
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
    const now = performance.now();
    return now < eagerUntil || (now >= from && now < until) ? immediate(look) : later(look, 1);
  };
  const paced = Object.assign(schedule, immediate) as typeof immediate; // its result can be cleared in the same way
  const kick = (ms = 0): void => {
    const now = performance.now();
    eagerUntil = now + EAGER_MS;
    const isKnown = ms > 0 && ms <= EXPECTED_MS_MAX;
    from = isKnown ? now + EXPECTED.from * ms - TIMER_MS : 0;
    until = isKnown ? now + EXPECTED.until * ms : 0;
  };
  return { start, kick };
}
