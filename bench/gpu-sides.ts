/**
 * The measurements of gpu.ts, each in a separate process: `bun bench/gpu-sides.ts SIDE FILE PROMPT TOKENS` prints one
 * line of JSON. A side that cannot run here exits with the reason on standard error.
 */
import { join } from "node:path";
import { loadProgram } from "../src/engine/architectures/index.ts";
import type { Session } from "../src/engine/program/backend.ts";
import type { Step, Weight } from "../src/engine/program/step.ts";
import { tuningFile } from "../src/engine/backends/host/tuning-file.ts";
import { dawn } from "../src/engine/backends/host/dawn.ts";
import { openDevice, type Device } from "../src/engine/backends/webgpu/device.ts";
import { webGpuBackend } from "../src/engine/backends/host/webgpu.ts";
import { USAGE } from "../src/engine/backends/webgpu/usage.ts";
import { messageOf } from "../src/base/errors.ts";
import { KERNELS_EXPECTED, parseKernels } from "../src/base/kernel-tuning.ts";
import { openGguf } from "../src/engine/formats/files/gguf.ts";
import { measureProducts, type Products } from "./gpu-products.ts";
import { traceOf, type Trace } from "./gpu-trace.ts";

const CTX_LEN = 2048;
/** The fastest kernels are searched once, as in a server, and cached here. */
const CACHE_DIR = join(import.meta.dir, "out", "cache");
/** Runs of the products. */
const REPEATS = 10;

export interface Work {
  readonly file: string;
  readonly prompt: number;
  readonly tokens: number;
}

/** Tokens per second. */
export interface Rates {
  readonly device: string;
  readonly loadMs: number;
  readonly prefill: number;
  readonly decode: number;
}

export interface AdapterReport {
  readonly name: string;
  readonly software: boolean;
  readonly features: readonly string[];
  readonly limits: Device["facts"]["limits"];
  /** Read and written. */
  readonly copyBytesPerSecond: number;
}

export interface Traces {
  readonly decode: Trace;
  readonly prefill: Trace;
  /** Bytes of weights that one token reads. */
  readonly weightBytes: number;
}

/** Output of each side, by name. */
export interface Answers {
  adapter: AdapterReport;
  hearth: Rates;
  llama: Rates;
  trace: Traces;
  products: Products;
}
export type SideName = keyof Answers;

const sides: { readonly [Name in SideName]: (work: Work) => Promise<Answers[Name]> } = {
  async adapter() {
    const device = await openDevice(dawn());
    const { name, software, features, limits } = device.facts;
    return { name, software, features, limits, copyBytesPerSecond: await copyRate(device) };
  },

  hearth: ({ file, prompt, tokens }) =>
    withSession(file, async (session, loadMs) => {
      const ids = idsOf(prompt);
      await feed(session, 0, ids.subarray(0, Math.min(64, prompt))); // both passes have run once
      await feed(session, 0, ids.subarray(0, 1));
      const prefillMs = await timeOf(() => feed(session, 0, ids));
      const decodeMs = await timeOf(async () => {
        for (let i = 0; i < tokens; i++) await feed(session, prompt + i, Int32Array.of(300 + i));
      });
      return {
        device: session.device,
        loadMs,
        prefill: (1000 * prompt) / prefillMs,
        decode: (1000 * tokens) / decodeMs,
      };
    }),

  async llama({ file, prompt, tokens }) {
    const { getLlama, LlamaLogLevel } = await import("node-llama-cpp");
    const startedMs = performance.now();
    const binding = await getLlama({ gpu: "vulkan", build: "never", logLevel: LlamaLogLevel.error });
    const device = (await binding.getGpuDeviceNames()).join(", ");
    const model = await binding.loadModel({ modelPath: file, gpuLayers: "max" });
    const context = await model.createContext({ contextSize: CTX_LEN, batchSize: Math.max(64, prompt) });
    const sequence = context.getSequence();
    const loadMs = performance.now() - startedMs;
    // a branded type
    const ids = [...idsOf(prompt)] as Parameters<typeof sequence.evaluateWithoutGeneratingNewTokens>[0];
    await sequence.evaluateWithoutGeneratingNewTokens(ids.slice(0, 64));
    await sequence.clearHistory();
    const prefillMs = await timeOf(() => sequence.evaluateWithoutGeneratingNewTokens(ids));
    let decoded = 0;
    const decodeMs = await timeOf(async () => {
      for await (const _ of sequence.evaluate(ids.slice(0, 1), { temperature: 0, yieldEogToken: true }))
        if (++decoded === tokens) return;
    });
    return { device, loadMs, prefill: (1000 * prompt) / prefillMs, decode: (1000 * decoded) / decodeMs };
  },

  async trace({ file, prompt }) {
    const device = await openDevice(dawn());
    const weightBytes = weightBytesOf(file);
    return withSession(file, async (session) => ({
      prefill: await traceOf(device, () => feed(session, 0, idsOf(prompt))),
      decode: await traceOf(device, () => feed(session, prompt, Int32Array.of(300))),
      weightBytes,
    }));
  },

  products: ({ file, prompt }) => measureProducts(file, { rows: prompt, repeats: REPEATS }),
};

/** Token ids that are ordinary text in every vocabulary of a thousand or more. */
const idsOf = (count: number): Int32Array => Int32Array.from({ length: count }, (_, i) => 300 + ((i * 7919) % 700));

const feed = (session: Session, start: number, tokens: Int32Array): Promise<Float32Array> =>
  session.run([{ slot: 0, start, tokens, logits: "last" }]);

async function withSession<T>(file: string, use: (session: Session, loadMs: number) => Promise<T>): Promise<T> {
  const startedMs = performance.now();
  const gguf = openGguf(file);
  const gpuKernels = parseKernels(process.env["HEARTH_GPU_KERNELS"] ?? "auto");
  if (!gpuKernels) throw new Error(`HEARTH_GPU_KERNELS: expected ${KERNELS_EXPECTED}`);
  const tunings = tuningFile(CACHE_DIR);
  const options = { ctxLen: CTX_LEN, slots: 1, precise: false, threads: 0, cacheDir: CACHE_DIR, tunings, gpuKernels };
  const session = await webGpuBackend.load(loadProgram(gguf), options);
  const result = await use(session, performance.now() - startedMs);
  session.close();
  gguf.close();
  return result;
}

/** Bytes of weights that one token reads: all matrices except an embedding table that is not also the output's. */
function weightBytesOf(file: string): number {
  const gguf = openGguf(file);
  const { steps, weights } = loadProgram(gguf);
  const isWeight = (value: unknown): value is Weight => typeof value === "object" && value !== null && "quant" in value;
  const read = steps.flatMap((step: Step) => (step.op === "embed" ? [] : Object.values(step).filter(isWeight)));
  const bytes = [...new Set(read.map(({ name }) => name))].reduce((sum, name) => sum + weights.read(name).length, 0);
  gguf.close();
  return bytes;
}

/** Copy rate of the device in bytes per second, reads and writes. */
async function copyRate(device: Device): Promise<number> {
  const { gpu, facts } = device;
  const size = Math.min(256 * 2 ** 20, facts.limits.maxBufferSize);
  const [from, to] = [0, 1].map(() => gpu.createBuffer({ size, usage: USAGE.copySrc | USAGE.copyDst }));
  const times = facts.software ? 2 : 40;
  const copyAll = async (): Promise<void> => {
    const encoder = gpu.createCommandEncoder();
    for (let i = 0; i < times; i++) encoder.copyBufferToBuffer(from!, 0, to!, 0, size); // two were made
    device.submit(encoder.finish());
    await device.flush();
  };
  await copyAll();
  const ms = [await timeOf(copyAll), await timeOf(copyAll), await timeOf(copyAll)].toSorted((a, b) => a - b)[1]!;
  return (2 * size * times * 1000) / ms;
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}

if (import.meta.main) {
  const [name = "", file = "", prompt, tokens] = process.argv.slice(2);
  if (!Object.hasOwn(sides, name))
    throw new Error(`usage: gpu-sides.ts ${Object.keys(sides).join("|")} FILE PROMPT TOKENS`);
  try {
    const answer = await sides[name as SideName]({ file, prompt: Number(prompt), tokens: Number(tokens) }); // looked up
    console.log(JSON.stringify(answer));
    process.exit(0);
  } catch (error) {
    console.error(messageOf(error));
    process.exit(1);
  }
}
