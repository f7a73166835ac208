/**
 * Counts failed attempts by client address and locks out addresses that fail too often. A valid credential is never
 * locked out, because callers ask only after a wrong credential. Memory and time are bounded for any number of
 * addresses.
 */

/** Failures within a window after which an address is locked out. */
export const FAILURES_MAX = 20;
export const WINDOW_MS = 60_000;
const LOCK_MS = 60_000;
/** Maximum number of locked addresses, and of counted ones. */
const ENTRIES_MAX = 10_000;
/** Interval of searches for expired locks while the table is full. */
const SWEEP_MS = 1000;

export interface Failure {
  /** Set: this address is locked out, or there is no room to lock it. */
  readonly lockedForMs?: number;
  /** Failures left before a lock. */
  readonly remaining: number;
  /** Time until the address has all attempts again. */
  readonly resetMs: number;
}

interface Window {
  readonly endsAt: number;
  readonly failures: number;
}

export class Throttle {
  /**
   * Addresses with failures, in two generations: when the young one is half full, it becomes the old one, and the old
   * one is dropped. Finding a map's oldest entry gets slower the more have been deleted.
   */
  #young = new Map<string, Window>();
  #old = new Map<string, Window>();
  /** End of each lock. */
  readonly #locked = new Map<string, number>();
  readonly #now: () => number;
  #sweptAt = -Infinity;

  constructor(now: () => number) {
    this.#now = now;
  }

  get size(): number {
    return this.#young.size + this.#old.size + this.#locked.size;
  }

  isLocked(key: string): boolean {
    return isAhead(this.#locked.get(key), this.#now());
  }

  /** Records a failure. A failure of a locked address changes nothing: the lock is not extended. */
  fail(key: string): Failure {
    const now = this.#now();
    const until = this.#locked.get(key);
    if (until !== undefined && isAhead(until, now)) return locked(until - now);
    if (!this.#hasRoomForLock(now)) return locked(LOCK_MS); // refuse, rather than drop another lock
    const known = this.#young.get(key) ?? this.#old.get(key);
    const { endsAt, failures } = known && isAhead(known.endsAt, now) ? known : { endsAt: now + WINDOW_MS, failures: 0 };
    if (failures + 1 < FAILURES_MAX) {
      this.#count(key, { endsAt, failures: failures + 1 });
      return { remaining: FAILURES_MAX - failures - 1, resetMs: endsAt - now };
    }
    this.clear(key);
    this.#locked.set(key, now + LOCK_MS);
    return { remaining: 0, resetMs: LOCK_MS };
  }

  /** Called after a valid credential from this address. */
  clear(key: string): void {
    this.#young.delete(key);
    this.#old.delete(key);
    this.#locked.delete(key);
  }

  #count(key: string, window: Window): void {
    this.#old.delete(key);
    this.#young.set(key, window);
    if (this.#young.size < ENTRIES_MAX / 2) return;
    this.#old = this.#young;
    this.#young = new Map();
  }

  #hasRoomForLock(now: number): boolean {
    if (this.#locked.size < ENTRIES_MAX) return true;
    if (isAhead(this.#sweptAt + SWEEP_MS, now)) return false;
    this.#sweptAt = now;
    for (const [key, until] of this.#locked) if (!isAhead(until, now)) this.#locked.delete(key);
    return this.#locked.size < ENTRIES_MAX;
  }
}

/**
 * True if a lock or window is still active. One that ends later than its length allows dates from before the clock was
 * set back.
 */
const isAhead = (until: number | undefined, now: number): boolean =>
  until !== undefined && until > now && until - now <= Math.max(LOCK_MS, WINDOW_MS);

const locked = (ms: number): Failure => ({ lockedForMs: ms, remaining: 0, resetMs: ms });
