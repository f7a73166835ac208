/**
 * The GPU work of a run, from WebGPU's side: dispatches, time to encode them, and each kernel's own time if the device
 * has timestamps. While a trace is on, every dispatch is a separate pass between two timestamps.
 */
import { USAGE } from "../src/engine/backends/webgpu/usage.ts";
import type { Device } from "../src/engine/backends/webgpu/device.ts";

/** `GPUBufferUsage.QUERY_RESOLVE` */
const QUERY_RESOLVE = 0x200;
/** Timestamps of a query set. (WebGPU, maximum count) */
const STAMPS_MAX = 4096;

export interface Trace {
  readonly dispatches: number;
  /** Time from the encoder's creation to its submit, in a run without timestamps. */
  readonly encodeMs: number;
  /** Longest first; empty if the device has no timestamps. */
  readonly kernels: readonly { readonly kernel: string; readonly count: number; readonly ms: number }[];
}

/** Traces the submits of `run`; `run` is called several times and must do the same each time. */
export async function traceOf(device: Device, run: () => Promise<unknown>): Promise<Trace> {
  await run(); // warm-up compiles the driver's shaders
  const encodesMs: number[] = [];
  for (let i = 0; i < 5; i++) encodesMs.push(await encodeMsOf(device.gpu, run));
  const encodeMs = encodesMs.toSorted((a, b) => a - b)[2]!;
  const stamped = device.gpu.features.has("timestamp-query");
  const labels: string[] = [];
  const querySet = stamped ? device.gpu.createQuerySet({ type: "timestamp", count: STAMPS_MAX }) : undefined;
  using _ = splitPasses(device.gpu, labels, querySet);
  await run();
  if (!querySet) return { dispatches: labels.length, encodeMs, kernels: [] };
  const stamps = await readStamps(device, querySet, Math.min(2 * labels.length, STAMPS_MAX));
  querySet.destroy();
  return { dispatches: labels.length, encodeMs, kernels: sumByKernel(labels, stamps) };
}

async function encodeMsOf(gpu: GPUDevice, run: () => Promise<unknown>): Promise<number> {
  let [startedMs, endedMs] = [0, 0];
  using encoder = replaceMethod(gpu, "createCommandEncoder", (own) => (...args) => {
    startedMs = performance.now();
    return own(...args);
  });
  using submit = replaceMethod(gpu.queue, "submit", (own) => (...args) => {
    if (endedMs < startedMs) endedMs = performance.now();
    return own(...args);
  });
  void [encoder, submit];
  await run();
  return endedMs - startedMs;
}

/** Makes each dispatch a separate pass, with timestamps if there is a query set; undone when disposed of. */
function splitPasses(gpu: GPUDevice, labels: string[], querySet: GPUQuerySet | undefined): Disposable {
  return replaceMethod(gpu, "createCommandEncoder", (own) => (...args) => {
    const encoder = own(...args);
    const begin = encoder.beginComputePass.bind(encoder);
    encoder.beginComputePass = () => {
      let pipeline: GPUComputePipeline | undefined;
      const bindings: [number, GPUBindGroup][] = [];
      const dispatch = (...groups: [number, number?, number?]): void => {
        const first = 2 * labels.length;
        labels.push(pipeline?.label ?? "");
        const stamped = querySet && first + 1 < STAMPS_MAX;
        const pass = begin(
          stamped
            ? { timestampWrites: { querySet, beginningOfPassWriteIndex: first, endOfPassWriteIndex: first + 1 } }
            : {},
        );
        pass.setPipeline(pipeline!);
        for (const [index, group] of bindings) pass.setBindGroup(index, group);
        pass.dispatchWorkgroups(...groups);
        pass.end();
      };
      // The methods that recorded passes use; any other fails loudly.
      return {
        setPipeline: (next: GPUComputePipeline) => void (pipeline = next),
        setBindGroup: (index: number, group: GPUBindGroup) => void (bindings[index] = [index, group]),
        dispatchWorkgroups: dispatch,
        end: () => {},
      } as unknown as GPUComputePassEncoder;
    };
    return encoder;
  });
}

type Methods<T> = { [K in keyof T as T[K] extends (...args: never[]) => unknown ? K : never]: T[K] };

/** Replaces a method of an object's class, until disposed of. */
function replaceMethod<T extends object, K extends keyof Methods<T> & string>(
  owner: T,
  name: K,
  make: (own: T[K]) => T[K],
): Disposable {
  const own = (owner[name] as (...args: never[]) => unknown).bind(owner) as T[K]; // a method, by its key
  Object.defineProperty(owner, name, { value: make(own), configurable: true });
  return { [Symbol.dispose]: () => void Reflect.deleteProperty(owner, name) };
}

async function readStamps(device: Device, querySet: GPUQuerySet, count: number): Promise<BigUint64Array> {
  const { gpu } = device;
  const size = 8 * count;
  const resolved = gpu.createBuffer({ size, usage: USAGE.copySrc | QUERY_RESOLVE });
  const readable = gpu.createBuffer({ size, usage: USAGE.mapRead | USAGE.copyDst });
  const encoder = gpu.createCommandEncoder();
  encoder.resolveQuerySet(querySet, 0, count, resolved, 0);
  encoder.copyBufferToBuffer(resolved, 0, readable, 0, size);
  device.submit(encoder.finish());
  await device.wait(() => readable.mapAsync(1));
  const stamps = new BigUint64Array(readable.getMappedRange().slice(0));
  for (const each of [resolved, readable]) each.destroy();
  return stamps;
}

function sumByKernel(labels: readonly string[], stamps: BigUint64Array): Trace["kernels"] {
  const sums = new Map<string, { kernel: string; count: number; ms: number }>();
  for (const [i, kernel] of labels.entries()) {
    const [begin, end] = [stamps[2 * i], stamps[2 * i + 1]];
    if (begin === undefined || end === undefined) break;
    const entry = sums.get(kernel) ?? { kernel, count: 0, ms: 0 };
    sums.set(kernel, entry);
    entry.count++;
    entry.ms += Number(end - begin) / 1e6;
  }
  return [...sums.values()].toSorted((a, b) => b.ms - a.ms);
}
