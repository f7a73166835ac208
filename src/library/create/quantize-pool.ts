/** The threads of a quantizer. `quantize-worker.ts` does their work; `quantize.ts` orders the results. */
import { AppError } from "../../base/index.ts";
import type { Begin, Job, Reply } from "./quantize-worker.ts";

interface Pending {
  readonly worker: number;
  readonly resolve: (bytes: Uint8Array) => void;
  readonly reject: (error: Error) => void;
}

/** Owns the threads. Disposal ends them and their jobs. */
export class QuantizePool implements Disposable {
  readonly size: number;
  readonly #workers: Worker[];
  readonly #loads: number[];
  readonly #pending = new Map<number, Pending>();
  readonly #signal: AbortSignal | undefined;
  readonly #onAbort = (): void => this.#fail(new AppError("cancelled", "quantization: cancelled by the caller"));
  #failure: Error | undefined;

  constructor({ size, signal, ...begin }: Begin & { readonly size: number; readonly signal: AbortSignal | undefined }) {
    this.size = Math.max(1, size);
    this.#loads = Array.from({ length: this.size }, () => 0);
    this.#workers = this.#loads.map(() => {
      const worker = new Worker(new URL("./quantize-worker.ts", import.meta.url));
      worker.onmessage = ({ data }: { data: Reply }) => this.#settle(data);
      worker.onerror = ({ message }) => this.#fail(new Error(`quantization: a thread failed: ${message}`));
      worker.postMessage(begin satisfies Begin);
      return worker;
    });
    this.#signal = signal;
    signal?.addEventListener("abort", this.#onAbort);
    if (signal?.aborted) this.#onAbort();
  }

  /** Gives the job to the thread with the fewest jobs. */
  run(job: Job): Promise<Uint8Array> {
    if (this.#failure) return Promise.reject(this.#failure);
    const worker = this.#loads.indexOf(Math.min(...this.#loads));
    this.#loads[worker]!++;
    this.#workers[worker]!.postMessage(job);
    return new Promise((resolve, reject) => this.#pending.set(job.id, { worker, resolve, reject }));
  }

  #settle(reply: Reply): void {
    const job = this.#pending.get(reply.id);
    if (!job) return; // it was cancelled
    this.#pending.delete(reply.id);
    this.#loads[job.worker]!--;
    if ("bytes" in reply) job.resolve(reply.bytes);
    else job.reject(reply.code ? new AppError(reply.code, reply.problem) : new Error(reply.problem));
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    for (const { reject } of this.#pending.values()) reject(this.#failure);
    this.#pending.clear();
  }

  [Symbol.dispose](): void {
    this.#signal?.removeEventListener("abort", this.#onAbort);
    for (const worker of this.#workers) worker.terminate();
    this.#fail(new Error("quantization: the threads have ended"));
  }
}
