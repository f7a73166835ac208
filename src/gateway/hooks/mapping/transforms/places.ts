/**
 * Places for calls, handed out fairly: a lane (a mapping) has a few of its own, and one whose calls never end leaves as
 * many to the others. Whoever waits too long, or goes away, waits no more.
 */
import { AppError } from "../../../../base/index.ts";

export interface PlaceLimits {
  /** Calls of one lane that run at once. */
  readonly perLane: number;
  /** Calls that run at once. */
  readonly total: number;
  /** Calls of one lane, and of all, that may wait. */
  readonly laneWaiting: number;
  readonly totalWaiting: number;
}

interface Waiter {
  readonly lane: string;
  readonly start: () => void;
}

export class Places {
  readonly #limits: PlaceLimits;
  readonly #running = new Map<string, number>();
  #taken = 0;
  /** Oldest first. */
  readonly #waiting = new Set<Waiter>();

  constructor(limits: PlaceLimits) {
    this.#limits = limits;
  }

  /** Resolves with a place; `leave` gives it back. Throws `busy` or `cancelled`. */
  async enter(lane: string, { timeoutMs, signal }: { timeoutMs: number; signal?: AbortSignal }): Promise<void> {
    if (signal?.aborted) throw new AppError("cancelled", "request canceled");
    if (this.#hasPlace(lane) && !this.#waits(lane)) {
      this.#take(lane, 1);
      return;
    }
    this.#checkQueue(lane);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter: Waiter = { lane, start: resolve };
    const giveUp = (error: AppError): void => {
      if (this.#waiting.delete(waiter)) reject(error);
    };
    const cancel = (): void => giveUp(new AppError("cancelled", "request canceled"));
    const late = (): void => giveUp(new AppError("busy", `it waited ${timeoutMs} ms for others to end`));
    const timer = setTimeout(late, timeoutMs);
    signal?.addEventListener("abort", cancel, { once: true });
    this.#waiting.add(waiter);
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", cancel);
    }
  }

  leave(lane: string): void {
    this.#take(lane, -1);
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      this.#waiting.delete(next);
      this.#take(next.lane, 1);
      next.start();
    }
  }

  /** Of the lanes that may run one more, the one with the fewest running; of those the one that waits longest. */
  #next(): Waiter | undefined {
    let best: Waiter | undefined;
    for (const waiter of this.#waiting) {
      if (!this.#hasPlace(waiter.lane)) continue;
      if (best === undefined || this.#runningOf(waiter.lane) < this.#runningOf(best.lane)) best = waiter;
    }
    return best;
  }

  #runningOf(lane: string): number {
    return this.#running.get(lane) ?? 0;
  }

  #hasPlace(lane: string): boolean {
    return this.#taken < this.#limits.total && this.#runningOf(lane) < this.#limits.perLane;
  }

  #waits(lane: string): boolean {
    for (const waiter of this.#waiting) if (waiter.lane === lane) return true;
    return false;
  }

  /** A lane never has more waiting than it leaves room for. */
  #checkQueue(lane: string): void {
    const { laneWaiting, totalWaiting } = this.#limits;
    const own = [...this.#waiting].filter((waiter) => waiter.lane === lane).length;
    if (own < Math.min(laneWaiting, totalWaiting - this.#waiting.size)) return;
    throw new AppError("busy", `${own} calls wait already`);
  }

  #take(lane: string, change: 1 | -1): void {
    const own = this.#runningOf(lane) + change;
    if (own > 0) this.#running.set(lane, own);
    else this.#running.delete(lane);
    this.#taken += change;
  }
}
