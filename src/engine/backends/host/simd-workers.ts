/** The threads of a session, which call a library of this machine. */
import { dlopen, FFIType, ptr, type Pointer } from "bun:ffi";
import type { ByteSource } from "../../formats/gguf/source.ts";
import type { Begun } from "../../program/backend.ts";
import { makeThreadPool, makeSignal, type ThreadPool } from "../simd/thread-pool.ts";
import { preferFastCores } from "./fast-cores.ts";
import type { MappedRange } from "./page-finder.ts";

/** The orders that a Worker follows from now on. */
interface WorkerOrders {
  readonly library: string;
  readonly header: number;
  readonly index: number;
  readonly signal: Int32Array;
}

/** Before its orders, a Worker may get files to map, or a request to end. */
export type ToWorker = WorkerOrders | MappedRange | "leave";

export interface Kernels {
  run(header: number, index: number): void;
}

/** A smaller file is read before a Worker has started. */
const LARGE_BYTES = 64 * 2 ** 20;
/** Size of one view of a source. */
const VIEW_BYTES = 2 ** 31;

export function openKernels(path: string): Kernels {
  const { symbols } = dlopen(path, { hearth_run: { args: [FFIType.ptr, FFIType.i32], returns: FFIType.void } });
  // Addresses of user space fit in 2^53.
  return { run: (header, index) => void symbols.hearth_run(header as Pointer, index) };
}

/** @param header address of the header of passes */
export function startThreadPool(
  library: string,
  header: number,
  { threads, early }: { threads: number; early?: EarlyWorkers | undefined },
): ThreadPool {
  const kernels = openKernels(library);
  preferFastCores();
  const signal = makeSignal(true);
  const workers = early?.take(threads) ?? startWorkers(threads);
  for (const [i, worker] of workers.entries()) tell(worker, { library, header, index: i + 1, signal });
  return makeThreadPool(workers, signal, () => kernels.run(header, 0));
}

/** Workers that start when a large file is opened, and map its pages until there is a program to run. */
export class EarlyWorkers implements Begun {
  readonly #threads: number;
  #workers: Worker[] = [];

  constructor(threads: number) {
    this.#threads = threads;
  }

  readonly opened = (source: ByteSource): void => {
    if (source.copies || source.byteLength < LARGE_BYTES || this.#threads < 2) return;
    if (this.#workers.length === 0) this.#workers = startWorkers(this.#threads);
    for (let at = 0; at < source.byteLength; at += VIEW_BYTES) {
      const view = source.view(at, Math.min(VIEW_BYTES, source.byteLength - at));
      tell(this.#workers[0]!, { address: ptr(view), byteLength: view.byteLength });
    }
  };

  /** Hands over the Workers to a session with this many threads; undefined if no Worker is left. */
  take(threads: number): Worker[] | undefined {
    if (this.#workers.length !== threads - 1) return undefined;
    const taken = this.#workers;
    this.#workers = [];
    return taken;
  }

  end(): void {
    for (const worker of this.#workers) {
      worker.onmessage = () => worker.terminate(); // its message says that it calls no native code
      tell(worker, "leave");
    }
    this.#workers = [];
  }
}

const tell = (worker: Worker, message: ToWorker): void => worker.postMessage(message);

const startWorkers = (threads: number): Worker[] =>
  Array.from({ length: threads - 1 }, () => {
    const worker = new Worker(new URL("./simd-worker.ts", import.meta.url));
    worker.unref(); // does not keep a process alive
    return worker;
  });
