/**
 * The host's time of a decode step: what a token costs the processor when a GPU computes, for 200 dispatches. Between
 * steps comes the rest of a token's work: it is drawn, detokenized and written to a stream of HTTP, which leaves other
 * data in the caches.
 *
 *   bun bench/make-model.ts q4_0 --size deep
 *   chrt -f 10 taskset -c 0 bun bench/gpu-host.ts FILE.gguf [--steps 600] [--record]
 *
 * - `null`, Dawn's null adapter: our code, the runtime's and Dawn's, without a driver. It binds 8 buffers at most, so
 *   less is fused, and the file has twice the dispatches.
 * - `driver`, SwiftShader with one workgroup a dispatch: a Vulkan driver records the commands of the real step. Its
 *   threads, which stand for the GPU, run on the other processors.
 *
 * The times are processor times: `path` of this thread while the GPU or the client waits for it, before the device
 * begins and after it ended; `thread` of this thread in the step, but for polls while it waits; `process` of all
 * threads and polls, on `null` only: on `driver` the GPU is among the threads. Both are scaled from the dispatches that
 * a step has there. The process starts itself again in the environment of a runner.
 */
import { dlopen, FFIType } from "bun:ffi";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { loadProgram } from "../src/engine/architectures/index.ts";
import { makeChooser } from "../src/engine/backends/webgpu/chooser.ts";
import { dawn } from "../src/engine/backends/host/dawn.ts";
import { openDevice, type Device } from "../src/engine/backends/webgpu/device.ts";
import { makeShift } from "../src/engine/backends/webgpu/kv-cache.ts";
import { makePump } from "../src/engine/backends/webgpu/device-polling.ts";
import { makePlan, type Plan } from "../src/engine/backends/webgpu/plan.ts";
import type { GpuProvider } from "../src/engine/backends/webgpu/provider.ts";
import { WebGpuSession } from "../src/engine/backends/webgpu/session.ts";
import { openGguf } from "../src/engine/formats/files/gguf.ts";
import { SAMPLING_DEFAULTS } from "../src/engine/text/sampling/options.ts";
import { makeSampler } from "../src/engine/text/sampling/sampler.ts";
import { loadTokenizer } from "../src/engine/text/index.ts";
import { runnerEnvironment } from "../src/runtime/processes/runner-process.ts";
import { makeStreamDetokenizer } from "../src/engine/text/tokenizer/stream.ts";
import { writeRecord, type Figure } from "./report/record.ts";

/** Number of dispatches that the figures refer to. */
const DISPATCHES = 200;
/** The goal for the time that a token waits for the host, and for all of the process's time. */
const GOAL_MS = 0.3;
/** Steps before the measured ones, until all code is compiled. */
const WARM = 400;
/** The last of them, whose dispatches are counted: their contexts are divided among workgroups, as measured ones. */
const COUNTED = 100;
const VOCABULARY = join(import.meta.dir, "../models/hearth/hearth.gguf");
/** The null adapter's name here: sessions refuse its own. */
const NULL = "null";
/** Candidates of a step: the device chooses one and goes ahead, or the host draws. */
const MODES = { "temperature 0": 1, "temperature 1": 40 };
/** Linux's `CLOCK_PROCESS_CPUTIME_ID` and `CLOCK_THREAD_CPUTIME_ID`. */
const CLOCKS = { process: 2, thread: 3 };

const { values: flags, positionals } = parseArgs({
  options: { steps: { type: "string", default: "600" }, record: { type: "boolean", default: false } },
  allowPositionals: true,
});
const [file] = positionals;
if (!file) throw new Error("usage: gpu-host.ts FILE.gguf [--steps 600] [--record]");
const steps = Number(flags.steps);
const environment = runnerEnvironment(process.env);
if (process.env["MALLOC_MMAP_THRESHOLD_"] !== environment["MALLOC_MMAP_THRESHOLD_"]) {
  const again = Bun.spawn(process.argv, { env: environment, stdio: ["ignore", "inherit", "inherit"] });
  process.exit(await again.exited);
}
const { clock_gettime: readClock, sched_setaffinity: setAffinity } = dlopen("libc.so.6", {
  clock_gettime: { args: [FFIType.i32, FFIType.ptr], returns: FFIType.i32 },
  sched_setaffinity: { args: [FFIType.i32, FFIType.u64, FFIType.ptr], returns: FFIType.i32 },
}).symbols;
const timespec = new BigInt64Array(2); // seconds, nanoseconds

interface Spent {
  readonly path: number;
  readonly thread: number;
  readonly process: number;
}

const others = await restOfToken();
const figures: Figure[] = [];
for (const [adapter, open] of Object.entries({ null: openNull, driver: openDriver })) {
  const device = await open();
  const made = await load(device, file);
  for (const [mode, k] of Object.entries(MODES)) {
    const { spent, count } = await measure(device, made, k);
    const kinds = (["path", "thread", "process"] as const).filter((kind) => adapter === "null" || kind !== "process");
    for (const kind of kinds) {
      // The path has 16 dispatches for any number of dispatches in the step
      const share = kind === "path" ? 1 : DISPATCHES / count;
      const sorted = spent.map((each) => each[kind] * share).toSorted((a, b) => a - b);
      const [low, middle, high] = [0.1, 0.5, 0.9].map((part) => sorted[Math.floor(part * sorted.length)]!);
      const what = `${adapter} adapter, ${mode}, ${kind}`;
      console.log(`${what.padEnd(40)} ${[low, middle, high].map((ms) => ms!.toFixed(3)).join("  ")}  (${count})`);
      const goal = kind !== "thread" && { goal: { of: "value", atMost: GOAL_MS } as const };
      figures.push({ what, measure: "host time", unit: "ms", ours: [low!, middle!, high!], ...goal });
    }
  }
  made.session.close();
}
if (flags.record) writeRecord("gpu-host", { title: `Host time of ${DISPATCHES} dispatches`, figures });
process.exit(0);

/** The null adapter, which stays rooted: a collected instance ends the process. */
async function openNull(): Promise<Device> {
  const { create } = await import("webgpu");
  const gpu = create(["backend=null", "enable-dawn-features=allow_unsafe_apis,disable_workgroup_init"]);
  const named = {
    wgslLanguageFeatures: gpu.wgslLanguageFeatures,
    async requestAdapter() {
      const adapter = (await gpu.requestAdapter())!; // requested by name
      return Object.defineProperty(adapter, "info", { value: { device: NULL, description: NULL } });
    },
  } as unknown as GPU; // the members that opening a device uses
  const provider: GpuProvider = { pump: makePump(), open: () => Promise.resolve(named) };
  Object.assign(globalThis, { [Symbol("null adapter")]: gpu });
  return openDevice(provider);
}

/** SwiftShader on the other processors, for one workgroup of each dispatch. */
async function openDriver(): Promise<Device> {
  const passes = await passPrototype();
  const dispatch = passes.dispatchWorkgroups;
  passes.dispatchWorkgroups = function (this: GPUComputePassEncoder) {
    return dispatch.call(this, 1, 1, 1);
  };
  runOn(~1n); // inherited by threads that the driver starts
  await dawn().open({ software: true });
  const device = await openDevice(dawn());
  await device.flush();
  runOn(1n);
  return device;
}

/** Lets this thread run on some processors, one bit each. */
function runOn(processors: bigint): void {
  setAffinity(0, 8, BigInt64Array.of(processors));
}

async function load(device: Device, path: string) {
  const program = loadProgram(openGguf(path));
  const ctxLen = WARM + steps + 8;
  const options = { ctxLen, slots: 1, precise: false, threads: 0, cacheDir: undefined };
  const plan = await makePlan(device, program, options);
  const shift = await makeShift(device, program, { plan, ctxLen });
  const chooser = await makeChooser(device, program, { plan, rows: 1 });
  return { plan, session: new WebGpuSession({ device, program, options, plan, shift, chooser, states: undefined }) };
}

/** The methods of all passes. */
async function passPrototype(): Promise<GPUComputePassEncoder> {
  const { globals } = (await import("webgpu")) as unknown as { globals: { GPUComputePassEncoder: Function } };
  return globals.GPUComputePassEncoder.prototype as GPUComputePassEncoder;
}

/** Counts the dispatches of all passes from now on; call the result for their number, after which nothing counts. */
async function countDispatches(): Promise<() => number> {
  const passes = await passPrototype();
  const dispatch = passes.dispatchWorkgroups;
  let count = 0;
  passes.dispatchWorkgroups = function (this: GPUComputePassEncoder, ...sizes) {
    count++;
    return dispatch.apply(this, sizes);
  };
  return () => {
    passes.dispatchWorkgroups = dispatch;
    return count;
  };
}

async function measure(
  device: Device,
  { plan, session }: { plan: Plan; session: WebGpuSession },
  k: number,
): Promise<{ spent: Spent[]; count: number }> {
  const request = { k, masked: new Int32Array(0) };
  const spent: Spent[] = [];
  let [token, count] = [0, 0];
  let counted: (() => number) | undefined;
  for (let start = 0; start < WARM + steps; start++) {
    if (start === WARM - COUNTED) counted = await countDispatches();
    if (start === WARM) count = Math.round(counted!() / COUNTED);
    const row = { slot: 0, start, tokens: Int32Array.of(token), logits: "last", request } as const;
    const step = await hostTimes(() => session.topK!.run([row]), { device, plan });
    if (start >= WARM) spent.push(step.spent);
    token = step.result.topK[0]?.ids[0] ?? 0;
    await others(start);
  }
  return { spent, count };
}

/** Runs a step, and measures the host's time. */
async function hostTimes<T>(run: () => Promise<T>, { device, plan }: { device: Device; plan: Plan }) {
  const { queue } = device.gpu;
  const submit = queue.submit.bind(queue);
  let [begin, mapped]: (number | undefined)[] = [];
  queue.submit = (commands) => {
    submit(commands);
    begin ??= cpuMs("thread") - started;
  };
  const buffers = [plan.readback, plan.readbackAhead];
  for (const buffer of buffers) {
    const [mapAsync, getMappedRange] = [buffer.mapAsync.bind(buffer), buffer.getMappedRange.bind(buffer)];
    buffer.mapAsync = (...args) => {
      begin ??= 0; // the step was submitted ahead
      return mapAsync(...args);
    };
    buffer.getMappedRange = (...args) => {
      mapped = cpuMs("thread");
      const range = getMappedRange(...args);
      if (device.facts.device === NULL) new Uint8Array(range).fill(0); // its memory is not cleared
      return range;
    };
  }
  const processStarted = cpuMs("process");
  const started = cpuMs("thread");
  const running = run(); // returns when it waits
  const before = cpuMs("thread") - started;
  const result = await running;
  const read = cpuMs("thread") - mapped!; // every step reads
  const all = cpuMs("process") - processStarted;
  Reflect.deleteProperty(queue, "submit");
  for (const each of buffers) for (const name of ["mapAsync", "getMappedRange"]) Reflect.deleteProperty(each, name);
  return { result, spent: { path: begin! + read, thread: before + read, process: all } };
}

/**
 * Returns a function that does the rest of a token's work: draws it, decodes its text, and writes the text to a client.
 */
async function restOfToken(): Promise<(at: number) => Promise<void>> {
  const tokenizer = loadTokenizer(openGguf(VOCABULARY).metadata, VOCABULARY);
  const { vocabSize } = tokenizer;
  const sampler = makeSampler({ ...SAMPLING_DEFAULTS, seed: 1 }, { vocabSize, ctxLen: 4096 });
  const texts = makeStreamDetokenizer(tokenizer);
  const encoder = new TextEncoder();
  let client: ReadableStreamDefaultController<Uint8Array>;
  const start = (each: typeof client): void => (client = each).enqueue(encoder.encode(": begin\n\n"));
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch: () => new Response(new ReadableStream({ start })),
  });
  const response = await fetch(server.url);
  const reader = response.body!.getReader();
  await reader.read();
  return async (at) => {
    const ids = Int32Array.from({ length: 40 }, (_, i) => (37 * at + i) % vocabSize);
    const id = sampler.choose({ ids, logits: Float32Array.from(ids, (_, i) => 10 - i / 4) });
    sampler.accept(id);
    const choices = [{ index: 0, delta: { content: texts.push(id) }, finish_reason: null }];
    const event = JSON.stringify({ id: "chatcmpl-1", object: "chat.completion.chunk", choices });
    client.enqueue(encoder.encode(`data: ${event}\n\n`));
    await reader.read();
  };
}

function cpuMs(clock: keyof typeof CLOCKS): number {
  readClock(CLOCKS[clock], timespec);
  return Number(timespec[0]!) * 1e3 + Number(timespec[1]!) / 1e6;
}
