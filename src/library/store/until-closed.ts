/** Long work that ends when it is done, its client leaves, or the server stops. */
import { AppError } from "../../base/index.ts";

/**
 * Forwards `work`, which throws `cancelled` once its signal is aborted. If `closing` aborted it, throws the reason of
 * `closing` instead.
 */
export async function* untilClosed<T>(
  closing: AbortSignal,
  signal: AbortSignal | undefined,
  work: (signal: AbortSignal) => AsyncGenerator<T, void, void>,
): AsyncGenerator<T, void, void> {
  try {
    yield* work(signal ? AbortSignal.any([signal, closing]) : closing);
  } catch (error) {
    const isCancelled = error instanceof AppError && error.code === "cancelled";
    throw isCancelled && closing.aborted ? closing.reason : error;
  }
}
