/**
 * The threads of a session. This one takes part in every pass; the others are Workers that make one call per pass and
 * sleep between passes. A late one finds everything done. None is terminated while it is inside of a call.
 */
import { dlopen, FFIType, type Pointer } from "bun:ffi";

export interface Crew {
  /** Runs the pass that the header holds. */
  run(): void;
  /** Lets the Workers go; `whenGone` is called when none of them can touch memory any more. */
  dismiss(whenGone: () => void): void;
}

/** What a Worker is told when it begins. */
export interface WorkerOrders {
  readonly library: string;
  readonly header: number;
  readonly index: number;
  /** [0]: number of the pass, −1 to leave */
  readonly signal: Int32Array;
}

export interface Kernels {
  run(header: number, index: number): void;
}

export function openKernels(path: string): Kernels {
  const { symbols } = dlopen(path, { hearth_run: { args: [FFIType.ptr, FFIType.i32], returns: FFIType.void } });
  // Addresses of user space fit in 2^53.
  return { run: (header, index) => void symbols.hearth_run(header as Pointer, index) };
}

/** @param header address of the header of passes */
export function startCrew(library: string, header: number, threads: number): Crew {
  const kernels = openKernels(library);
  const signal = new Int32Array(new SharedArrayBuffer(4));
  const workers = Array.from({ length: threads - 1 }, (_, i) => {
    const worker = new Worker(new URL("./worker.ts", import.meta.url));
    worker.unref(); // a process that has nothing else to do ends
    worker.postMessage({ library, header, index: i + 1, signal } satisfies WorkerOrders);
    return worker;
  });
  return {
    run() {
      if (workers.length > 0) {
        Atomics.store(signal, 0, (signal[0]! + 1) & 0x3fffffff);
        Atomics.notify(signal, 0);
      }
      kernels.run(header, 0);
    },
    dismiss(whenGone) {
      let left = workers.length;
      const gone = (worker?: Worker): void => {
        worker?.terminate();
        if (worker) left--;
        if (left === 0) whenGone();
      };
      for (const worker of workers) {
        worker.onmessage = () => gone(worker); // it says that it has left its loop
        worker.onerror = () => gone(worker);
      }
      Atomics.store(signal, 0, -1);
      Atomics.notify(signal, 0);
      if (left === 0) gone();
    },
  };
}
