/** The clock of long-lived parts, which tests can move. */

export interface Clock {
  /** Epoch milliseconds. */
  now(): number;
  /** Runs `work` once after `ms`; returns a function that cancels it. */
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

/** Nanoseconds since an arbitrary moment, for durations. */
export const nowNs = (): number => Math.round(performance.now() * 1e6);

/** True if `atMs` is less than `spanMs` ago. False if it is in the future, because the clock was set back since. */
export const isRecent = (atMs: number, nowMs: number, spanMs: number): boolean =>
  atMs <= nowMs && nowMs - atMs < spanMs;

/** Whole seconds between two times, in epoch milliseconds; 0 if the clock was set back between them. */
export const secondsBetween = (fromMs: number, toMs: number): number => Math.max(0, Math.round((toMs - fromMs) / 1000));

/** Smaller differences may be the uncertainty of another machine's clock. */
const SET_BACK_MS = 1000;

/** Makes a function that returns whether the clock was set back since its last call. */
export function setBackDetector(now: () => number): () => boolean {
  const offset = (): number => now() - performance.now();
  let before = offset();
  return () => {
    const is = offset();
    const isSetBack = is < before - SET_BACK_MS;
    before = is;
    return isSetBack;
  };
}

/** Returns whether this machine knows a time zone of this name. */
export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
