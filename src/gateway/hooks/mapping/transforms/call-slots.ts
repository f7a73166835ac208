/**
 * Slots for calls, shared fairly: each lane (a mapping) has a separate limit, so that calls that never end block only
 * their own lane. A caller that waits too long, or disconnects, leaves the queue.
 */
import { AppError } from "../../../../base/index.ts";

export interface SlotLimits {
  readonly perLane: number;
  /** Concurrent calls of all lanes. */
  readonly total: number;
  /** Calls of one lane, and of all, that may wait. */
  readonly laneWaiting: number;
  readonly totalWaiting: number;
}

interface Waiter {
  readonly lane: string;
  readonly start: () => void;
}

export class CallSlots {
  readonly #limits: SlotLimits;
  readonly #running = new Map<string, number>();
  #taken = 0;
  /** Oldest first. */
  readonly #waiting = new Set<Waiter>();

  constructor(limits: SlotLimits) {
    this.#limits = limits;
  }

  /** Resolves with a slot; `leave` returns it. Throws `busy` or `cancelled`. */
  async enter(lane: string, { timeoutMs, signal }: { timeoutMs: number; signal?: AbortSignal }): Promise<void> {
    if (signal?.aborted) throw new AppError("cancelled", "request canceled");
    if (this.#hasSlot(lane) && !this.#waits(lane)) {
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

  /**
   * A waiter of the lane with the fewest running calls among the lanes with a free slot; of equal lanes, the one that
   * has waited longest.
   */
  #next(): Waiter | undefined {
    let best: Waiter | undefined;
    for (const waiter of this.#waiting) {
      if (!this.#hasSlot(waiter.lane)) continue;
      if (best === undefined || this.#runningOf(waiter.lane) < this.#runningOf(best.lane)) best = waiter;
    }
    return best;
  }

  #runningOf(lane: string): number {
    return this.#running.get(lane) ?? 0;
  }

  #hasSlot(lane: string): boolean {
    return this.#taken < this.#limits.total && this.#runningOf(lane) < this.#limits.perLane;
  }

  #waits(lane: string): boolean {
    for (const waiter of this.#waiting) if (waiter.lane === lane) return true;
    return false;
  }

  /** Limits the waiting calls of a lane to the room that it leaves for other lanes. */
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
