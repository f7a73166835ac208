/**
 * The two kinds of failure. Expected failures (bad input, a missing model, a dead runner) are `AppError`s with a code
 * from a closed union. Invariants are `assert`s; a failed one is our bug. Only the server maps codes to statuses.
 */

/** Every expected failure is one of these. */
export type Code =
  | "bad_request" // a request that is malformed, out of range, or contradictory
  | "unauthorized"
  | "forbidden"
  | "not_found"
  | "conflict"
  | "bad_file" // a file that is not what it claims to be
  | "storage" // the disk is full or not writable
  | "too_large" // over a named limit
  | "busy" // a queue or the memory is full
  | "cancelled" // the caller went away
  | "timeout" // the caller sent nothing more in the middle of a request
  | "unsupported" // understood, but not possible in this build or on this machine
  | "unsupported_coding" // a body in an unsupported compression
  | "runner" // a model's process failed
  | "registry" // a registry failed or refused; separate, because clients expect status 500
  | "upstream"; // another server failed

interface ErrorDetails {
  readonly cause?: unknown;
  readonly retryAfterMs?: number;
  readonly isUntried?: boolean;
  readonly errorCode?: string;
}

/** An expected failure. The message names the thing, its place, the expected and the actual value. */
export class AppError extends Error {
  override readonly name = "AppError";
  readonly code: Code;
  /** Time after which a repeat may succeed, if known. */
  readonly retryAfterMs: number | undefined;
  /** True if nothing was begun: the peer is down, or accepts no requests. */
  readonly isUntried: boolean;
  /** A word for clients of a dialect, besides the code. */
  readonly errorCode: string | undefined;

  constructor(code: Code, message: string, options?: ErrorDetails) {
    super(message, options);
    this.code = code;
    this.retryAfterMs = options?.retryAfterMs;
    this.isUntried = options?.isUntried ?? false;
    this.errorCode = options?.errorCode;
  }
}

/** Throws if an invariant does not hold: a bug here, never the caller's fault. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`invariant: ${message}`);
}

/** Throws `cancelled` if the caller went away. */
export function checkNotCancelled(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new AppError("cancelled", "request canceled");
}

/** Refuses new and waiting requests during shutdown; retryable. */
export const shuttingDown = (retryAfterMs?: number): AppError =>
  new AppError("busy", "the server is shutting down", retryAfterMs === undefined ? {} : { retryAfterMs });

const TEMPORARY: ReadonlySet<Code> = new Set<Code>(["busy", "runner", "storage", "timeout", "upstream", "registry"]);

/** Returns whether a repeat may succeed. Unexpected errors count as temporary; callers limit their repeats. */
export const isTemporary = (error: unknown): boolean => !(error instanceof AppError) || TEMPORARY.has(error.code);

/** The code of any value that a runner threw. */
export const codeOf = (error: unknown): Code => (error instanceof AppError ? error.code : "runner");

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
