/** Time as the long-lived parts see it, so that tests can move it. */

export interface Clock {
  /** Epoch milliseconds. */
  now(): number;
  /** Runs `work` once after `ms`; returns what takes it back. */
  after(ms: number, work: () => void): () => void;
}

/** The system's timers fire at once for longer delays. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: Date.now,
  after(ms, work) {
    const due = Date.now() + ms;
    let timer: ReturnType<typeof setTimeout>;
    const wait = (leftMs: number): void => {
      timer = setTimeout(
        () => (due - Date.now() > 0 && leftMs > TIMER_MS_MAX ? wait(due - Date.now()) : work()),
        Math.min(Math.max(0, leftMs), TIMER_MS_MAX),
      );
    };
    wait(ms);
    return () => clearTimeout(timer);
  },
};

/** Nanoseconds since some moment before: for durations. */
export const nowNs = (): number => Math.round(performance.now() * 1e6);
