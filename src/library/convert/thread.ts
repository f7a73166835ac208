/** Conversions in a separate thread, cancellable at any time; see `convert-worker.ts`. */
import { AppError } from "../../base/index.ts";
import type { ConvertJob, ConvertReply } from "./convert-worker.ts";
import type { Converted, ConvertProgress } from "./convert.ts";

export interface ThreadOptions {
  readonly onProgress?: ((progress: ConvertProgress) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Writes `job.to`. Throws the errors of `convertModel` and `convertAdapter`, system errors with their `code`, and
 * `cancelled`; then a part of `job.to` may be left.
 */
export async function convertInThread(job: ConvertJob, { onProgress, signal }: ThreadOptions = {}): Promise<Converted> {
  const { promise, resolve, reject } = Promise.withResolvers<Converted>();
  const worker = new Worker(new URL("./convert-worker.ts", import.meta.url));
  const onAbort = (): void => reject(new AppError("cancelled", "conversion: cancelled by the caller"));
  worker.onmessage = ({ data: reply }: { data: ConvertReply }) => {
    if ("progress" in reply) onProgress?.(reply.progress);
    else if ("done" in reply) resolve(reply.done);
    else reject(errorOf(reply));
  };
  worker.onerror = ({ message }) => reject(new Error(`conversion: the thread failed: ${message}`));
  signal?.addEventListener("abort", onAbort);
  try {
    if (signal?.aborted) onAbort();
    else worker.postMessage(job);
    return await promise;
  } finally {
    signal?.removeEventListener("abort", onAbort);
    worker.terminate();
  }
}

function errorOf({ problem, code, errno }: Extract<ConvertReply, { problem: string }>): Error {
  return code ? new AppError(code, problem) : Object.assign(new Error(problem), { code: errno });
}
