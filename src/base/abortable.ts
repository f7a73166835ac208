/** Waits that can be cancelled, with a reason. */
import { AppError } from "./errors.ts";

/** The reason for the end of a wait: the reason given to `close`, or that the client disconnected. */
export const reasonOf = ({ reason }: AbortSignal): AppError =>
  reason instanceof AppError ? reason : new AppError("cancelled", "request canceled");

/** A promise that rejects with the reason when one of the signals aborts. */
export function abortable<T>(promise: Promise<T>, signals: readonly AbortSignal[]): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = (): void => reject(reasonOf(signals.find((signal) => signal.aborted)!)); // called once a signal aborts
  if (signals.some((signal) => signal.aborted)) abort();
  for (const signal of signals) signal.addEventListener("abort", abort, { once: true });
  return Promise.race([promise, aborted]).finally(() => {
    for (const signal of signals) signal.removeEventListener("abort", abort);
  });
}
