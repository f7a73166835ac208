/** Watches a load and decode steps from inside the process with the device; inside.test.ts reads its output. */
import { cpuBackend } from "../../../../src/engine/backends/cpu.ts";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import { dawn } from "../../../../src/engine/backends/host/dawn.ts";
import { TOGGLES } from "./swiftshader.ts";
import { openDevice } from "../../../../src/engine/backends/webgpu/device.ts";
import { webGpuBackend } from "../../../../src/engine/backends/host/webgpu.ts";
import type { Backend, Program } from "../../../../src/engine/program/backend.ts";
import type { Step } from "../../../../src/engine/program/step.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";

export interface Inside {
  /** Pipelines of the load, and the most that were being compiled at the same time. */
  readonly pipelines: number;
  readonly atOnce: number;
  /** Timestamps of the device in nanoseconds. */
  readonly stamps: readonly number[];
  /** Bytes read back for a token at temperature 0. */
  readonly bytesRead: number;
  /** Pauses of an encoder's run of 2,100 rows and 33 dispatches, and its largest difference from the reference. */
  readonly pauses: number;
  readonly difference: number;
}

const device = await openDevice(dawn(TOGGLES));
const { gpu } = device;
let [pipelines, compiling, atOnce] = [0, 0, 0];
const compile = gpu.createComputePipelineAsync.bind(gpu);
gpu.createComputePipelineAsync = async (descriptor) => {
  pipelines++;
  atOnce = Math.max(atOnce, ++compiling);
  return compile(descriptor).finally(() => compiling--);
};
let bytesRead = 0;
const create = gpu.createBuffer.bind(gpu);
gpu.createBuffer = (descriptor) => {
  const buffer = create(descriptor);
  const map = buffer.mapAsync.bind(buffer);
  return Object.assign(buffer, {
    mapAsync: (...args: Parameters<GPUBuffer["mapAsync"]>) => [map(...args), (bytesRead += args[2] ?? 0)][0],
  });
};

const gguf = openGguf(process.argv[2]!);
const options = { ctxLen: 64, slots: 1, precise: false, threads: 1, cacheDir: undefined };
const session = await webGpuBackend.load(loadProgram(gguf), options);
const loaded = { pipelines, atOnce };
const request = { k: 1, masked: new Int32Array(0) };
const step = (start: number) =>
  session.topK!.run([{ slot: 0, start, tokens: Int32Array.of(5), logits: "last", request }]);
await step(0);
bytesRead = 0;
await step(1);
const bytesOfStep = bytesRead;
const long = await runLong();
const set = gpu.createQuerySet({ type: "timestamp", count: 2 });
const [resolved, readable] = [gpu.createBuffer({ size: 16, usage: 0x204 }), gpu.createBuffer({ size: 16, usage: 9 })];
const stamps: number[] = [];
for (let i = 0; i < 4; i++) {
  const encoder = gpu.createCommandEncoder();
  const writes = { querySet: set, beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 };
  encoder.beginComputePass({ timestampWrites: writes }).end();
  encoder.resolveQuerySet(set, 0, 2, resolved, 0);
  encoder.copyBufferToBuffer(resolved, 0, readable, 0, 16);
  device.submit(encoder.finish());
  await device.wait(() => readable.mapAsync(1));
  stamps.push(...[...new BigUint64Array(readable.getMappedRange())].map((stamp) => Number(stamp % 65_536n)));
  readable.unmap();
}
console.log(JSON.stringify({ ...loaded, stamps, bytesRead: bytesOfStep, ...long } satisfies Inside));
process.exit(0); // a driver's threads may remain

/** A run of an encoder that is submitted in parts. */
async function runLong(): Promise<Pick<Inside, "pauses" | "difference">> {
  const [x, y] = [
    { name: "x", dim: 4 },
    { name: "y", dim: 4 },
  ];
  const attention = { out: y, q: x, k: x, v: x, nHeads: 1, headDim: 4, scale: 1, window: 6 };
  const steps: Step[] = [
    { op: "input", out: x },
    ...Array.from({ length: 30 }, (_, i): Step => ({ op: "scale", x, by: i % 2 === 0 ? 0.5 : 2 })),
    { op: "bidirectionalAttention", ...attention },
    { op: "add", out: y, a: y, b: x, scale: 0.5 },
  ];
  const shape = { arch: "long", dim: 4, nLayers: 1, vocabSize: 0 };
  const weights = { path: "long", read: () => new Uint8Array() };
  const program: Program = { shape, steps, logits: undefined, states: y, weights };
  const rows = 2100;
  const input = Float32Array.from({ length: 4 * rows }, (_, i) => Math.sin(i));
  let pauses = 0;
  const run = async (backend: Backend): Promise<Float32Array> => {
    const encoder = await backend.load(program, { ...options, precise: true, ctxLen: rows });
    const given = { slot: 0, start: 0, tokens: new Int32Array(rows), input, states: "all" as const };
    const states = (await encoder.states([given], async () => void pauses++)).slice();
    encoder.close();
    return states;
  };
  const expected = await run(cpuBackend);
  pauses = 0;
  const got = await run(webGpuBackend);
  return { pauses, difference: Math.max(...got.map((value, i) => Math.abs(value - expected[i]!))) };
}
