/**
 * The two kinds of failure. What we expect (bad input, a missing model, a dead runner) is an `AppError` with a code
 * from a closed union; what we guarantee is an `assert`, and failing one is our bug. Only the server maps codes to
 * statuses.
 */

/** Every expected failure is one of these. */
export type Code =
  | "bad_request" // the caller's fault: malformed, out of range, contradictory
  | "unauthorized"
  | "forbidden"
  | "not_found"
  | "conflict"
  | "bad_file" // a file that is not what it claims to be
  | "storage" // a disk that is full or may not be written
  | "too_large" // over a named limit
  | "busy" // a queue or the memory is full
  | "cancelled" // the caller went away
  | "timeout" // the caller went quiet in the middle of a request
  | "unsupported" // understood, but this build or machine cannot do it
  | "unsupported_coding" // a body in a compression that is not read
  | "runner" // a model's process failed
  | "registry" // a registry failed or refused; apart, because clients know it as a 500
  | "upstream"; // another server failed

interface ErrorDetails {
  readonly cause?: unknown;
  readonly retryAfterMs?: number;
  readonly isUntried?: boolean;
  readonly errorCode?: string;
}

/** An expected failure. The message names the thing, where, what was expected and what was there. */
export class AppError extends Error {
  override readonly name = "AppError";
  readonly code: Code;
  /** When a repeat may succeed, if known. */
  readonly retryAfterMs: number | undefined;
  /** Whether nothing was begun: whoever was asked is away, or took no requests. */
  readonly isUntried: boolean;
  /** A word that clients of a dialect go by, beside the code. */
  readonly errorCode: string | undefined;

  constructor(code: Code, message: string, options?: ErrorDetails) {
    super(message, options);
    this.code = code;
    this.retryAfterMs = options?.retryAfterMs;
    this.isUntried = options?.isUntried ?? false;
    this.errorCode = options?.errorCode;
  }
}

/** Throws when an invariant of ours does not hold: a bug here, never the caller's fault. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`invariant: ${message}`);
}

/** Throws `cancelled` once the caller went away. */
export function checkNotCancelled(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new AppError("cancelled", "request canceled");
}

/** Refusal of new and waiting requests during shutdown; retryable. */
export const shuttingDown = (retryAfterMs?: number): AppError =>
  new AppError("busy", "the server is shutting down", retryAfterMs === undefined ? {} : { retryAfterMs });

const TEMPORARY: ReadonlySet<Code> = new Set<Code>(["busy", "runner", "storage", "timeout", "upstream", "registry"]);

/** Whether a repeat may succeed. An unexpected error counts as temporary; callers limit their repeats. */
export const isTemporary = (error: unknown): boolean => !(error instanceof AppError) || TEMPORARY.has(error.code);

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
