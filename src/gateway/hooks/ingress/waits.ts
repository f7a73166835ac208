/** Requests that wait for runs: bounded in number, and released when the server stops. */

/** Each holds a connection and an entry in memory. */
export const WAITS_MAX = 256;

export interface Wait {
  /** Aborted when the client disconnects, or the server stops. */
  readonly signal: AbortSignal;
  end(): void;
}

export class Waits {
  readonly #open = new Set<AbortController>();

  get isFull(): boolean {
    return this.#open.size >= WAITS_MAX;
  }

  /** Undefined if too many requests wait already. The caller ends the wait. */
  begin(gone: AbortSignal): Wait | undefined {
    if (this.isFull) return undefined;
    const controller = new AbortController();
    const abort = (): void => controller.abort();
    this.#open.add(controller);
    gone.addEventListener("abort", abort, { once: true });
    if (gone.aborted) abort();
    return {
      signal: controller.signal,
      end: () => {
        gone.removeEventListener("abort", abort);
        this.#open.delete(controller);
      },
    };
  }

  /** Releases all. */
  endAll(): void {
    for (const controller of this.#open) controller.abort();
  }
}
