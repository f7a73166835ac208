/**
 * Trying again: what may pass is tried a few times with growing pauses, everything else fails at once. A try that
 * brought something on does not count against the next.
 */
import { AppError } from "../../base/index.ts";

/** How long to wait for a registry, how often to try, and how much to move at a time. */
export interface Limits {
  /** Without a byte for this long, a connection is given up. */
  readonly stallMs: number;
  /** Tries in a row that bring nothing before the whole fails. */
  readonly tries: number;
  /** The first pause; each further one is twice as long. */
  readonly backoffMs: number;
  /** Of a blob, downloaded over one connection. */
  readonly partBytes: number;
  /** Of a blob, uploaded in one request. */
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

/** A failure that may pass: a broken connection, an overloaded server. Never leaves `retry`. */
export class Transient extends Error {
  override readonly name = "Transient";
  /** What the server asked us to wait, if it did. */
  readonly afterMs: number;
  /** Whether the message says what is wrong, however often it was tried. */
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
  /** Grows whenever a try brings something on. */
  readonly progress?: () => number;
}

/** Throws what `work` throws unless it is transient; then `registry` after the last try, `cancelled` on abort. */
export async function retry<T>(work: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { limits, signal, progress = () => 0 } = options;
  for (let failures = 0, before = progress(); ; before = progress()) {
    try {
      return await work();
    } catch (error) {
      checkWanted(signal);
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

/** Throws `cancelled` once `signal` is aborted. */
export function checkWanted(signal: AbortSignal): void {
  if (signal.aborted) throw new AppError("cancelled", "request canceled");
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
