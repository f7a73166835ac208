/** Work on files in a separate Worker for each task; ending it cancels the task. */
import { startWorker } from "../engine/script.ts";

export type WorkTask =
  | { readonly kind: "digest"; readonly file: Blob }
  | { readonly kind: "document"; readonly file: Blob; readonly name: string };

export type WorkReply =
  | { readonly kind: "progress"; readonly done: number }
  | { readonly kind: "done"; readonly result: unknown }
  | { readonly kind: "failed"; readonly reason: string };

interface WorkOptions {
  readonly signal: AbortSignal;
  readonly onProgress?: (done: number) => void;
}

/** Throws the task's error with its message, and the signal's reason. */
export async function work<T>(task: WorkTask, { signal, onProgress = () => {} }: WorkOptions): Promise<T> {
  signal.throwIfAborted();
  const worker = startWorker<Worker>("hearth-files");
  try {
    return await new Promise<T>((resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
      worker.addEventListener("error", () => reject(new Error("the Worker for files failed")));
      worker.addEventListener("message", ({ data }: MessageEvent<WorkReply>) => {
        if (data.kind === "progress") onProgress(data.done);
        else if (data.kind === "done") resolve(data.result as T);
        else if (data.kind === "failed") reject(new Error(data.reason)); // PDF.js sends its own messages
      });
      worker.postMessage(task);
    });
  } finally {
    worker.terminate();
  }
}
