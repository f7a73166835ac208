/**
 * The GPU-independent cost of a decode step: submits, created GPU objects, time to encode, bytes read back, and bytes
 * moved relative to the weights'. Counted in a real session, so that a software adapter gives the same figures as a
 * GPU; the bytes come from the lowered program. Once with all logits, once with `--candidates` (one at temperature 0),
 * step by step in turn.
 *
 * The host's time is the processor time of this thread, which encodes, submits and reads, without its polls while it
 * waits: those last as long as the adapter takes. For 200 dispatches: bun bench/make-model.ts q4_k_m --size deep
 *
 *   bun bench/gpu-step.ts FILE.gguf [--tokens 8] [--at 0] [--candidates 1]
 */
import { dlopen, FFIType } from "bun:ffi";
import { parseArgs } from "node:util";
import { loadProgram } from "../src/engine/architectures/index.ts";
import { makeChooser } from "../src/engine/backends/webgpu/chooser.ts";
import { dawn } from "../src/engine/backends/host/dawn.ts";
import { openDevice } from "../src/engine/backends/webgpu/device.ts";
import { makeShift } from "../src/engine/backends/webgpu/kv-cache.ts";
import { makePlan } from "../src/engine/backends/webgpu/plan.ts";
import { replay, type Pass } from "../src/engine/backends/webgpu/record.ts";
import { WebGpuSession } from "../src/engine/backends/webgpu/session.ts";
import { openGguf } from "../src/engine/formats/files/gguf.ts";
import { decodeStepOf } from "../test/engine/backends/webgpu/decode-step.ts";
import { MAKERS } from "../test/engine/backends/webgpu/tally.ts";

/** Context length: room after the first position. */
const CTX_LEN = 256;
/** `CLOCK_THREAD_CPUTIME_ID` of Linux. */
const THREAD_CLOCK = 3;
const ENCODINGS = 500;
const timespec = new BigInt64Array(2); // seconds, nanoseconds
const clock = dlopen("libc.so.6", { clock_gettime: { args: [FFIType.i32, FFIType.ptr], returns: FFIType.i32 } });

const { values: flags, positionals } = parseArgs({
  options: {
    tokens: { type: "string", default: "8" },
    at: { type: "string", default: "0" }, // the first position
    candidates: { type: "string", default: "1" },
  },
  allowPositionals: true,
});
const [file] = positionals;
if (!file) throw new Error("usage: gpu-step.ts FILE.gguf [--tokens 8] [--at 0] [--candidates 1]");
const [count, first] = [Math.min(Number(flags.tokens), CTX_LEN - 1), Number(flags.at)];
const ctxLen = first + CTX_LEN;
await dawn().open({ software: true });
const device = await openDevice(dawn());
const program = loadProgram(openGguf(file));
const options = { ctxLen, slots: 1, precise: false, threads: 0, cacheDir: undefined };
const plan = await makePlan(device, program, options);
const shift = await makeShift(device, program, { plan, ctxLen });
const chooser = await makeChooser(device, program, { plan, rows: 1 });
const session = new WebGpuSession({ device, program, options, plan, shift, chooser, states: undefined });
const request = { k: Number(flags.candidates), masked: new Int32Array(0) };
const step = (i: number, few: boolean) => {
  const row = { slot: 0, start: first + i, tokens: Int32Array.of(i), logits: "last" } as const;
  return few ? session.topK!.run([{ ...row, request }]) : session.run([row]);
};
const SIDES = { logits: false, candidates: true };
type Side = keyof typeof SIDES;
const counted: Record<Side, (Seen & { readonly stepMs: number })[]> = { logits: [], candidates: [] };
const timed: Record<Side, Host[]> = { logits: [], candidates: [] };
for (const few of [false, true]) await step(0, few); // warm-up compiles the driver's shaders
for (let i = 1; i <= count; i++) {
  for (const [name, few] of Object.entries(SIDES) as [Side, boolean][]) {
    if (i % 2 === 0) {
      // Counting takes time, which must not be measured
      timed[name].push(await hostTimes(() => step(i, few), device.gpu.queue, plan.readback));
      continue;
    }
    const seen = watch(device.gpu, plan.readback);
    const startedMs = performance.now();
    await step(i, few);
    counted[name].push({ stepMs: performance.now() - startedMs, ...seen.stop() });
  }
}
const median = (values: number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
const { moved, weights } = decodeStepOf(program, { ctxLen, position: first + count });
console.log(`${device.facts.name}, ${count} tokens, ${request.k} of ${program.logits!.dim} candidates`);
const both = <T>(sides: Record<Side, readonly T[]>, of: (step: T) => number, sum: (values: number[]) => number) => ({
  logits: sum(sides.logits.map(of)),
  candidates: sum(sides.candidates.map(of)),
});
const row = (of: (step: (typeof counted)[Side][number]) => number, sum: (values: number[]) => number) =>
  both(counted, of, sum);
const least = (values: number[]): number => Math.min(...values);
const most = (values: number[]): number => Math.max(...values);
console.table({
  "dispatches per token, at most": row(({ dispatches }) => dispatches, most),
  "submits per token, at most": row(({ submits }) => submits, most),
  "GPU objects per token, but for the encoder and its passes, at most": row(({ objects }) => objects, most),
  "bytes read back per token, at most": row(({ readBack }) => readBack, most),
  "encoding before the submit, median ms": row(({ encodeMs }) => encodeMs, median),
  "encoding of the next step meanwhile, median ms": row(({ aheadMs }) => aheadMs, median),
  "host: encoding a step again and again, least ms": { logits: encodingMs(plan.passes.one) },
  "host: until the device begins, least ms": both(timed, ({ beginMs }) => beginMs, least),
  "host: all submits, least ms": both(timed, ({ submitMs }) => submitMs, least),
  "host: all until it waits, least ms": both(timed, ({ beforeMs }) => beforeMs, least),
  "host: after it waited, least ms": both(timed, ({ readMs }) => readMs, least),
  "step, median ms": row(({ stepMs }) => stepMs, median),
  "bytes moved over those of the weights that it needs": { logits: moved / weights },
});
session.close();
process.exit(0);

interface Seen {
  readonly submits: number;
  readonly objects: number;
  readonly dispatches: number;
  readonly readBack: number;
  readonly encodeMs: number;
  readonly aheadMs: number;
}

/**
 * The processor time of this thread in a step, in milliseconds: until it waits, until the first submit returns, in all
 * submits, after it waited.
 */
interface Host {
  readonly beginMs: number;
  readonly beforeMs: number;
  readonly submitMs: number;
  readonly readMs: number;
}

async function hostTimes(run: () => Promise<unknown>, queue: GPUQueue, readback: GPUBuffer): Promise<Host> {
  const [submit, getMappedRange] = [queue.submit.bind(queue), readback.getMappedRange.bind(readback)];
  let [beginMs, submitMs, mappedMs] = [NaN, 0, NaN];
  queue.submit = (commands) => {
    const before = threadMs();
    submit(commands);
    const after = threadMs();
    submitMs += after - before;
    if (Number.isNaN(beginMs)) beginMs = after - startedMs;
  };
  readback.getMappedRange = (...args) => {
    mappedMs = threadMs();
    return getMappedRange(...args);
  };
  const startedMs = threadMs();
  const running = run(); // returns when it begins to wait
  const beforeMs = threadMs() - startedMs;
  await running;
  const readMs = threadMs() - mappedMs;
  Reflect.deleteProperty(queue, "submit");
  Reflect.deleteProperty(readback, "getMappedRange");
  return { beforeMs, beginMs, submitMs, readMs };
}

/**
 * The minimum processor time of encoding a step: the code is compiled, and in the cache as it is between two tokens.
 */
function encodingMs({ dispatches }: Pass): number {
  const counts = { all: 1, wanted: 1, given: 0, sequences: 1, splits: 1, memorySplits: 1, forgotten: 0 };
  let least = Infinity;
  for (let i = 0; i < ENCODINGS; i++) {
    const startedMs = threadMs();
    const encoder = device.gpu.createCommandEncoder();
    const pass = encoder.beginComputePass();
    for (const each of dispatches) replay(pass, each, counts);
    pass.end();
    encoder.finish();
    least = Math.min(least, threadMs() - startedMs);
  }
  return least;
}

/** The processor time of this thread. `process.threadCpuUsage` only moves with the kernel's ticks. */
function threadMs(): number {
  clock.symbols.clock_gettime(THREAD_CLOCK, timespec);
  return Number(timespec[0]!) * 1e3 + Number(timespec[1]!) / 1e6;
}

/**
 * Counts submits, dispatches, created objects and bytes read back; measures the time from the first encoder to the
 * submit, and the time of encoding after it.
 */
export function watch(gpu: GPUDevice, readback: GPUBuffer): { stop(): Seen } {
  let [submits, objects, dispatches, readBack, encodeMs, aheadMs] = [0, 0, 0, 0, 0, 0];
  let startedMs: number | undefined; // the first encoder since the last submit
  const undo: (() => void)[] = [];
  const wrap = (
    owner: object,
    name: string,
    before: (args: unknown[]) => void,
    after?: (made: object) => void,
  ): void => {
    const own = Reflect.get(owner, name) as (...args: unknown[]) => object; // methods of WebGPU by name
    const wrapped = (...args: unknown[]): unknown => {
      before(args);
      const made = own.apply(owner, args);
      after?.(made);
      return made;
    };
    Object.defineProperty(owner, name, { value: wrapped, configurable: true });
    undo.push(() => void Reflect.deleteProperty(owner, name));
  };
  for (const name of MAKERS) wrap(gpu, name, () => void objects++);
  const count = (pass: object): void => wrap(pass, "dispatchWorkgroups", () => void dispatches++);
  const countIn = (encoder: object): void => {
    const begunMs = performance.now();
    startedMs ??= begunMs;
    wrap(encoder, "beginComputePass", () => {}, count);
    wrap(encoder, "finish", () => void (submits > 0 && (aheadMs += performance.now() - begunMs)));
  };
  wrap(gpu, "createCommandEncoder", () => {}, countIn);
  wrap(readback, "mapAsync", ([, , size]) => void (readBack += Number(size)));
  wrap(gpu.queue, "submit", () => {
    submits++;
    encodeMs += performance.now() - (startedMs ?? performance.now());
    startedMs = undefined;
  });
  return {
    stop() {
      for (const each of undo) each();
      return { submits, objects, dispatches, readBack, encodeMs, aheadMs };
    },
  };
}
