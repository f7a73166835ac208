/** The threads of a session, each with an instance of the module over one memory. */
import { makeThreadPool, makeSignal, takePart, type ThreadPool } from "../simd/thread-pool.ts";
import type { WasmMemory } from "./memory.ts";

const STACK_BYTES = 262_144; // the size of the first thread's stack in kernels/simd/build.sh

/** A thread's first message. */
export interface ThreadOrders {
  readonly module: WebAssembly.Module;
  readonly memory: WebAssembly.Memory;
  readonly header: number;
  readonly index: number;
  /** The end of its stack, which grows downwards. */
  readonly stackEnd: number;
  readonly signal: Int32Array;
}

/** Starts a Worker that calls `runThread` with its first message and answers when that returns. */
export type StartThread = () => Worker;

interface Exports {
  hearth_run(header: number, index: number): void;
  readonly __stack_pointer: WebAssembly.Global;
}

const instantiate = (module: WebAssembly.Module, memory: WebAssembly.Memory): Exports =>
  new WebAssembly.Instance(module, { env: { memory } }).exports as unknown as Exports; // the exports of build.sh

export interface CrewOptions {
  readonly module: WebAssembly.Module;
  readonly memory: WasmMemory;
  readonly threads: number;
  /** Undefined: one thread. */
  readonly startThread: StartThread | undefined;
}

/** @param header address of the header of passes */
export function startWasmThreadPool(header: number, { module, memory, threads, startThread }: CrewOptions): ThreadPool {
  const kernels = instantiate(module, memory.linear);
  const signal = makeSignal(startThread !== undefined);
  const workers: Worker[] = [];
  for (let index = 1; index < threads && startThread; index++) {
    const { address } = memory.allocate(STACK_BYTES, "a thread's stack");
    const worker = startThread();
    const [linear, stackEnd] = [memory.linear, address + STACK_BYTES];
    worker.postMessage({ module, memory: linear, header, index, stackEnd, signal } satisfies ThreadOrders);
    workers.push(worker);
  }
  return makeThreadPool(workers, signal, () => kernels.hearth_run(header, 0));
}

/** A thread's main function, until it is dismissed. */
export function runThread({ module, memory, header, index, stackEnd, signal }: ThreadOrders): void {
  const kernels = instantiate(module, memory);
  kernels.__stack_pointer.value = stackEnd;
  takePart(signal, () => kernels.hearth_run(header, index));
}
