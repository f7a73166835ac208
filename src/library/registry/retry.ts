/**
 * Retries: temporary failures are retried a few times with growing pauses; other failures are final. A try that made
 * progress resets the count.
 */
import { AppError, checkNotCancelled } from "../../base/index.ts";

/** Limits on waits for a registry, tries, and bytes per request. */
export interface Limits {
  /** A connection without a byte for this long is given up. */
  readonly stallMs: number;
  /** Consecutive tries without progress before the whole fails. */
  readonly tries: number;
  /** The first pause; it doubles each time. */
  readonly backoffMs: number;
  /** Bytes of a blob downloaded over one connection. */
  readonly partBytes: number;
  /** Bytes of a blob uploaded in one request. */
  readonly chunkBytes: number;
}

export const LIMITS: Limits = {
  stallMs: 30_000,
  tries: 6,
  backoffMs: 1000,
  partBytes: 64 * 1024 * 1024,
  chunkBytes: 100_000_000,
};
const PAUSE_MS_MAX = 60_000;

interface TransientDetails {
  readonly afterMs?: number;
  readonly isExplained?: boolean;
  readonly cause?: unknown;
}

/** A temporary failure: a broken connection, an overloaded server. Never leaves `retry`. */
export class Transient extends Error {
  override readonly name = "Transient";
  /** Delay that the server requested, if any. */
  readonly afterMs: number;
  /** True if the message is complete without the number of tries. */
  readonly isExplained: boolean;

  constructor(message: string, { afterMs = 0, isExplained = false, cause }: TransientDetails = {}) {
    super(message, { cause });
    this.afterMs = afterMs;
    this.isExplained = isExplained;
  }
}

interface RetryOptions {
  readonly limits: Limits;
  readonly signal: AbortSignal;
  /** Grows when a try makes progress. */
  readonly progress?: () => number;
}

/** Rethrows failures of `work` unless transient; throws `registry` after the last try, and `cancelled` on abort. */
export async function retry<T>(work: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { limits, signal, progress = () => 0 } = options;
  for (let failures = 0, before = progress(); ; before = progress()) {
    try {
      return await work();
    } catch (error) {
      checkNotCancelled(signal);
      if (!(error instanceof Transient)) throw error;
      failures = progress() > before ? 1 : failures + 1;
      if (failures >= limits.tries) {
        const message = error.isExplained ? error.message : `max retries exceeded: ${error.message}`;
        throw new AppError("registry", message, { cause: error });
      }
      const pauseMs = Math.max(error.afterMs, limits.backoffMs * 2 ** (failures - 1) * (0.75 + Math.random() / 2));
      await pause(Math.min(pauseMs, PAUSE_MS_MAX), signal);
    }
  }
}

/** Ends early on abort, without an error. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end, { once: true });
  });
}
