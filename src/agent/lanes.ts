/**
 * Which turns run now: one at a time per session, in the order in which they came, and no more at once than allowed.
 * The main session's have a place of their own, so that hooks cannot starve it.
 */
import { AppError } from "../base/errors.ts";

interface Waiting {
  readonly key: string;
  readonly isExempt: boolean;
  readonly start: () => void;
}

export interface LaneOptions {
  readonly key: string;
  /** Whether it runs however many others do. */
  readonly isExempt: boolean;
  /** Aborted: it leaves the queue. Work that has begun listens for itself. */
  readonly signal: AbortSignal;
}

export class Lanes {
  readonly #max: () => number;
  readonly #busy = new Set<string>();
  #counted = 0;
  #waiting: Waiting[] = [];

  /** @param max how many may run at once, asked anew each time */
  constructor(max: () => number) {
    this.#max = max;
  }

  /** Sessions whose turn runs. */
  get running(): number {
    return this.#busy.size;
  }

  /** Throws `cancelled` where the signal is aborted before its turn comes. */
  async run<T>({ key, isExempt, signal }: LaneOptions, work: () => Promise<T>): Promise<T> {
    await this.#enter({ key, isExempt, signal });
    try {
      return await work();
    } finally {
      this.#busy.delete(key);
      if (!isExempt) this.#counted--;
      this.#startAll();
    }
  }

  #enter({ key, isExempt, signal }: LaneOptions): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const gone = (): AppError =>
      new AppError("cancelled", `the turn of session '${key}' was cancelled before it began`);
    if (signal.aborted) throw gone();
    const leave = (): void => {
      this.#waiting = this.#waiting.filter((other) => other !== waiting);
      reject(gone());
    };
    const start = (): void => {
      signal.removeEventListener("abort", leave);
      resolve();
    };
    const waiting: Waiting = { key, isExempt, start };
    signal.addEventListener("abort", leave, { once: true });
    this.#waiting.push(waiting);
    this.#startAll();
    return promise;
  }

  #startAll(): void {
    const max = this.#max();
    this.#waiting = this.#waiting.filter((waiting) => {
      if (this.#busy.has(waiting.key) || (!waiting.isExempt && this.#counted >= max)) return true;
      this.#busy.add(waiting.key);
      if (!waiting.isExempt) this.#counted++;
      waiting.start();
      return false;
    });
  }
}
