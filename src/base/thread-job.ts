/** Runs one job in a separate thread, which contains the damage of hostile files. */
import { AppError } from "./errors.ts";

interface ThreadJob {
  /** Names the work in errors, as in "image: PNG of 3×4". */
  readonly what: string;
  /** Moved to the thread, not copied. */
  readonly transfer: ArrayBuffer[];
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * Sends a job to a new Worker, which is ended after its first message. An error of the Worker itself is returned as
 * `problem`. Throws `timeout` if there is no answer in time, and `cancelled` by the signal.
 */
export async function runInThread<Reply>(
  worker: Worker,
  job: object,
  { what, transfer, timeoutMs, signal }: ThreadJob,
): Promise<Reply | { readonly problem: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<Reply | { readonly problem: string }>();
  const timer = setTimeout(
    () => reject(new AppError("timeout", `${what}: expected to be decoded in ${timeoutMs / 1000} s, got nothing`)),
    timeoutMs,
  );
  const onAbort = (): void => reject(new AppError("cancelled", `${what}: cancelled by the caller`));
  worker.onmessage = ({ data }: MessageEvent<Reply>) => resolve(data);
  worker.onerror = ({ message }) => resolve({ problem: message });
  signal?.addEventListener("abort", onAbort);
  try {
    if (signal?.aborted) onAbort();
    else worker.postMessage(job, transfer);
    return await promise;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
    worker.terminate();
  }
}
