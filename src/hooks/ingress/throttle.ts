/**
 * Counts failed attempts by client address and locks out those who fail too often. A correct credential is never kept
 * out: callers ask here only once it turned out to be wrong. Memory is bounded, whatever addresses there are.
 */

/** Failures within a window after which an address is locked out. */
export const FAILURES_MAX = 20;
export const WINDOW_MS = 60_000;
const LOCK_MS = 60_000;
const ENTRIES_MAX = 10_000;

export interface Failure {
  /** Set: this address is locked out, or there is no room to count it. */
  readonly lockedForMs?: number;
  /** Failures that it still has before that. */
  readonly remaining: number;
  /** Until it has all of them again. */
  readonly resetMs: number;
}

interface Window {
  readonly endsAt: number;
  readonly failures: number;
}

export class Throttle {
  /** Addresses with failures, oldest window first. */
  readonly #counting = new Map<string, Window>();
  /** When each lock ends, first to end first: all locks are equally long. */
  readonly #locked = new Map<string, number>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  get size(): number {
    return this.#counting.size + this.#locked.size;
  }

  /** Records a failure. One that finds its address locked changes nothing: the lock does not grow. */
  fail(key: string): Failure {
    const now = this.#now();
    this.#forget(now);
    const lockedUntil = this.#locked.get(key);
    if (lockedUntil !== undefined) return locked(lockedUntil - now);
    const window = this.#counting.get(key);
    if (!window && !this.#makeRoom()) return locked(LOCK_MS);
    const { endsAt, failures } = window ?? { endsAt: now + WINDOW_MS, failures: 0 };
    if (failures + 1 < FAILURES_MAX) {
      this.#counting.set(key, { endsAt, failures: failures + 1 });
      return { remaining: FAILURES_MAX - failures - 1, resetMs: endsAt - now };
    }
    this.#counting.delete(key);
    this.#locked.set(key, now + LOCK_MS);
    return { remaining: 0, resetMs: LOCK_MS };
  }

  /** A correct credential came from there. */
  clear(key: string): void {
    this.#counting.delete(key);
    this.#locked.delete(key);
  }

  /** Windows and locks that are over; the first that is not ends the search. */
  #forget(now: number): void {
    for (const [key, { endsAt }] of this.#counting) {
      if (endsAt > now) break;
      this.#counting.delete(key);
    }
    for (const [key, until] of this.#locked) {
      if (until > now) break;
      this.#locked.delete(key);
    }
  }

  /** False where every entry is a lock: then newcomers are refused, rather than locks forgotten. */
  #makeRoom(): boolean {
    if (this.size < ENTRIES_MAX) return true;
    const [oldest] = this.#counting.keys();
    return oldest !== undefined && this.#counting.delete(oldest);
  }
}

const locked = (ms: number): Failure => ({ lockedForMs: ms, remaining: 0, resetMs: ms });
