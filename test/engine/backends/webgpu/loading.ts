/** Run by loading.test.ts with a GPU driver in its environment: loads, and counts leftovers on the device. */
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import type { LoadOptions, Program, Session } from "../../../../src/engine/program/backend.ts";
import { cutProgram, layerCount } from "../../../../src/engine/program/split.ts";
import { cpuBackend } from "../../../../src/engine/backends/cpu.ts";
import { makeOffloadingBackend } from "../../../../src/engine/backends/offload.ts";
import { dawn } from "../../../../src/engine/backends/host/dawn.ts";
import { TOGGLES } from "./swiftshader.ts";
import { openDevice } from "../../../../src/engine/backends/webgpu/device.ts";
import { webGpuBackend } from "../../../../src/engine/backends/host/webgpu.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { memorySource, type FilePlace } from "../../../../src/engine/formats/gguf/source.ts";
import { quants } from "../../../../src/engine/formats/quant/index.ts";

const options: LoadOptions = { ctxLen: 64, slots: 2, precise: true, threads: 1, cacheDir: undefined };
const { gpu } = await openDevice(dawn(TOGGLES));
const alive = new Set<GPUBuffer>();
let writtenBytes = 0;
const [create, write] = [gpu.createBuffer.bind(gpu), gpu.queue.writeBuffer.bind(gpu.queue)];
gpu.createBuffer = (descriptor) => {
  const buffer = create(descriptor);
  const destroy = buffer.destroy.bind(buffer);
  alive.add(buffer);
  return Object.assign(buffer, { destroy: () => [destroy(), alive.delete(buffer)][0] });
};
gpu.queue.writeBuffer = (...args: Parameters<GPUQueue["writeBuffer"]>) => {
  writtenBytes += (args[2] as Uint8Array).byteLength;
  return write(...args);
};

/** Bytes of the file, in order: asked for, at most asked for and not released, released. */
const disk = { asked: 0, most: 0, released: 0 };
const place = (name: string): FilePlace => {
  const from = 64 * 2 ** 20 * "abcd".indexOf(name);
  const next = (end: number, offset: number, length: number): number => (offset === end ? end + length : NaN);
  const file = {
    ...memorySource(new Uint8Array()),
    prefetch(offset: number, length: number) {
      disk.asked = next(disk.asked, offset, length);
      disk.most = Math.max(disk.most, disk.asked - disk.released);
    },
    release: (offset: number, length: number) => void (disk.released = next(disk.released, offset, length)),
  };
  return { file, offset: from, byteLength: 64 * 2 ** 20 };
};

/** A program of four matrices of 64 MiB each: zeros. */
function large(): Program {
  const [dim, wide] = [1024, 32_768];
  const zeros = new Uint8Array(2 * dim * wide);
  const w = (name: string, inDim: number, outDim: number) => {
    return { name, quant: quants.f16, inDim, outDim, rowStart: 0, tensorRows: outDim, experts: 1 };
  };
  const [x, y, last] = [
    { name: "x", dim },
    { name: "y", dim: wide },
    { name: "last", dim },
  ];
  return {
    shape: { arch: "zeros", dim, nLayers: 0, vocabSize: dim },
    steps: [
      { op: "embed", out: x, table: w("a", dim, wide), scale: 1 },
      { op: "linear", out: y, x, w: w("b", dim, wide) },
      { op: "linear", out: x, x: y, w: w("c", wide, dim) },
      { op: "linear", out: y, x, w: w("d", dim, wide) },
      { op: "takeRows", out: last, x },
    ],
    logits: last,
    states: last,
    weights: { path: "zeros", read: () => zeros, place },
  };
}

const totalBytes = ({ weights, kv, scratch }: Session["bytes"]): number => weights + kv + scratch;

/** Cancels a load at progress `at`; returns the outcome. */
async function cancelAt(at: number) {
  const abort = new AbortController();
  writtenBytes = 0;
  const onProgress = (done: number): void => void (done >= at && abort.abort());
  const load = webGpuBackend.load(large(), { ...options, signal: abort.signal, onProgress });
  const outcome = await load.then(
    (session) => [session.close(), "loaded"][1],
    (error: Error & { code: string }) => error.code,
  );
  return { outcome, writtenBytes, alive: alive.size };
}

/** For each number of layers of a model: predicted and allocated bytes. */
async function compareBytes(path: string) {
  const gguf = openGguf(path);
  const program = loadProgram(gguf);
  const results: { needed: number; taken: number }[] = [];
  for (let count = 1; count <= layerCount(program); count += 3) {
    const part = count === layerCount(program) ? program : cutProgram(program, count).back;
    const needed = await webGpuBackend.neededBytes!(part, options);
    const session = await webGpuBackend.load(part, options);
    results.push({ needed, taken: totalBytes(session.bytes) });
    session.close();
  }
  gguf.close();
  return results;
}

/** Loses the device in the middle of a load; returns the layers on the GPU in the end, and whether it answers. */
async function loseWhileLoading(path: string) {
  const gguf = openGguf(path);
  const program = loadProgram(gguf);
  let isLost = false;
  const written = gpu.queue.writeBuffer.bind(gpu.queue);
  gpu.queue.writeBuffer = (...args: Parameters<GPUQueue["writeBuffer"]>) => {
    if (!isLost) gpu.destroy();
    isLost = true;
    return written(...args);
  };
  const session = await makeOffloadingBackend({ gpu: webGpuBackend, cpu: cpuBackend, automatic: false }, {}).load(
    program,
    options,
  );
  const row = { slot: 0, start: 0, tokens: Int32Array.of(1), logits: "last" } as const;
  const logits = await session.run([row]);
  const result = { isLost, layers: session.gpuLayers?.count, all: layerCount(program), logits: logits.length };
  session.close();
  gguf.close();
  return result;
}

const before = alive.size;
const cancelled = [await cancelAt(0.2), await cancelAt(0.85)];
Object.assign(disk, { asked: 0, most: 0, released: 0 });
const whole = await cancelAt(2);
const bytes = await compareBytes(process.argv[2]!);
const after = alive.size;
const retried = await loseWhileLoading(process.argv[2]!);
console.log(JSON.stringify({ before, cancelled, whole, disk, bytes, after, retried }));
process.exit(0); // a driver's threads may remain
