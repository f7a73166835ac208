/**
 * The conversion thread: parsing a vocabulary and rounding weights would block the server. Entry point, started by
 * `thread.ts`; terminating the thread cancels the work.
 */
import { AppError, type Code, messageOf } from "../../base/index.ts";
import { convertAdapter, type AdapterOptions } from "./adapter.ts";
import { convertModel, type ConvertOptions, type Converted, type ConvertProgress } from "./convert.ts";

export type ConvertJob =
  ({ readonly kind: "model" } & Omit<ConvertOptions, "onProgress">) | ({ readonly kind: "adapter" } & AdapterOptions);

export type ConvertReply =
  | { readonly progress: ConvertProgress }
  | { readonly done: Converted }
  /** `code` is ours, `errno` the system's, as in `ENOSPC`. */
  | { readonly problem: string; readonly code: Code | undefined; readonly errno: string | undefined };

/** The shortest time between two progress messages. */
const PROGRESS_MS = 200;

/** The part of a worker's global object that we use. */
interface Thread {
  onmessage: ((event: { data: ConvertJob }) => void) | null;
  postMessage(reply: ConvertReply): void;
}

async function run(job: ConvertJob, reply: (reply: ConvertReply) => void): Promise<Converted> {
  if (job.kind === "adapter") {
    await convertAdapter(job);
    return { notes: [] };
  }
  let reportedMs = -Infinity;
  return convertModel({
    ...job,
    onProgress: (progress) => {
      const nowMs = performance.now();
      if (nowMs - reportedMs < PROGRESS_MS && progress.completed < progress.total) return;
      reportedMs = nowMs;
      reply({ progress });
    },
  });
}

if (!Bun.isMainThread) {
  const thread = globalThis as unknown as Thread; // a worker's global object has these
  thread.onmessage = ({ data: job }) => {
    run(job, (reply) => thread.postMessage(reply)).then(
      (done) => thread.postMessage({ done }),
      (error: unknown) => {
        const isOurs = error instanceof AppError;
        const errno = isOurs ? undefined : (error as NodeJS.ErrnoException).code; // errors of the system have one
        thread.postMessage({ problem: messageOf(error), code: isOurs ? error.code : undefined, errno });
      },
    );
  };
}
