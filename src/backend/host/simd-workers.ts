/** The threads of a session, which call a library of this machine. */
import { dlopen, FFIType, type Pointer } from "bun:ffi";
import { makeCrew, makeSignal, type Crew } from "../simd/crew.ts";

/** A Worker's first message. */
export interface WorkerOrders {
  readonly library: string;
  readonly header: number;
  readonly index: number;
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
  const signal = makeSignal(true);
  const workers = Array.from({ length: threads - 1 }, (_, i) => {
    const worker = new Worker(new URL("./simd-worker.ts", import.meta.url));
    worker.unref(); // a process that has nothing else to do ends
    worker.postMessage({ library, header, index: i + 1, signal } satisfies WorkerOrders);
    return worker;
  });
  return makeCrew(workers, signal, () => kernels.run(header, 0));
}
