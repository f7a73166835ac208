/**
 * Hearth on the GPU against llama.cpp's Vulkan build on the same device and files: prefill, decode, the share of the
 * device's copy bandwidth that decode reaches, dispatches and encoding per token, and the time in each kernel where the
 * device has timestamps. Makes its own models. A software adapter gives counts, and rates that mean nothing.
 *
 *   bun bench/gpu.ts [q4_0 q4_k_m f16 …] [--size 1.2b|8b] [--rounds 3] [--prompt 512] [--tokens 64] [--out FOLDER]
 *   bun bench/gpu.ts --file FILE.gguf …
 */
import { statSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { loadProgram } from "../src/arch/index.ts";
import { openDevice, type Device } from "../src/backend/webgpu/device.ts";
import { webGpuBackend } from "../src/backend/webgpu/index.ts";
import { makePlan } from "../src/backend/webgpu/plan.ts";
import { USAGE } from "../src/backend/webgpu/usage.ts";
import { openGguf } from "../src/gguf/read.ts";
import { ensureModel, MIXES, SHAPES, type Mix, type Size } from "./make-model.ts";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    size: { type: "string", default: "1.2b" },
    rounds: { type: "string", default: "3" },
    prompt: { type: "string", default: "512" },
    tokens: { type: "string", default: "64" },
    out: { type: "string", default: join(import.meta.dir, "out") },
    file: { type: "string" }, // this model instead of those made here
    llama: { type: "string" }, // a file: this process is llama.cpp's side
  },
});
const [promptLen, tokens, rounds] = [Number(flags.prompt), Number(flags.tokens), Number(flags.rounds)];
const prompt = Int32Array.from({ length: promptLen }, (_, i) => 300 + ((i * 7919) % 700));

/** Tokens per second. */
interface Rates {
  readonly prefill: number;
  readonly decode: number;
}

if (flags.llama) console.log(JSON.stringify(await runLlama(flags.llama)));
else await main();
process.exit(0);

async function main(): Promise<void> {
  if (!Object.hasOwn(SHAPES, flags.size)) throw new Error(`--size: expected ${Object.keys(SHAPES).join(" or ")}`);
  const device = await openDevice();
  const copy = await copyBandwidth(device);
  const kind = device.facts.software ? "software adapter: its rates mean nothing" : "GPU";
  console.log(`${device.facts.name} (${kind}), copies ${(copy / 1e9).toFixed(1)} GB/s`);
  if (flags.file) return compare(device, { file: flags.file, mix: "", copy });
  for (const mix of positionals.length > 0 ? positionals : ["q4_0", "q4_k_m", "f16"]) {
    if (!Object.hasOwn(MIXES, mix)) throw new Error(`'${mix}': expected one of ${Object.keys(MIXES).join(", ")}`);
    await compare(device, { file: await ensureModel(mix as Mix, flags.out, flags.size as Size), mix, copy });
  }
}

async function compare(
  device: Device,
  { file, mix, copy }: { file: string; mix: string; copy: number },
): Promise<void> {
  const sides: Record<"hearth" | "llama", Rates[]> = { hearth: [], llama: [] };
  for (let round = 0; round < rounds; round++) {
    sides.hearth.push(await runHearth(file));
    const llama = device.facts.software ? undefined : await llamaIn(file);
    if (llama) sides.llama.push(llama);
  }
  const [hearth, llama] = [medians(sides.hearth), medians(sides.llama)];
  const bytes = await weightBytesRead(device, file);
  console.log(
    `\n${flags.file ?? `${flags.size} ${mix}`}: ${(statSync(file).size / 1e9).toFixed(2)} GB, ${rounds} rounds, medians`,
  );
  console.table({
    "prefill, tokens/s": { hearth: hearth.prefill, llama: llama.prefill, ratio: hearth.prefill / llama.prefill },
    "decode, tokens/s": { hearth: hearth.decode, llama: llama.decode, ratio: hearth.decode / llama.decode },
  });
  const achieved = bytes * hearth.decode;
  const share = ((100 * achieved) / copy).toFixed(0);
  console.log(
    `decode reads ${(bytes / 1e9).toFixed(2)} GB per token, ${(achieved / 1e9).toFixed(1)} GB/s: ${share} % of copying`,
  );
  await profile(device, file);
}

async function runHearth(file: string): Promise<Rates> {
  const gguf = openGguf(file);
  const options = { ctxLen: 2048, slots: 1, precise: false, threads: 0, cacheDir: undefined };
  const session = await webGpuBackend.load(loadProgram(gguf), options);
  const feed = (start: number, ids: Int32Array) => session.run([{ slot: 0, start, tokens: ids, logits: "last" }]);
  await feed(0, prompt.subarray(0, Math.min(64, promptLen))); // warm-up, of both passes
  await feed(0, prompt.subarray(0, 1));
  const prefillMs = await timeOf(() => feed(0, prompt));
  const decodeMs = await timeOf(async () => {
    for (let i = 0; i < tokens; i++) await feed(promptLen + i, Int32Array.of(300 + i));
  });
  session.close();
  gguf.close();
  return { prefill: (1000 * promptLen) / prefillMs, decode: (1000 * tokens) / decodeMs };
}

/** llama.cpp in a process of its own; undefined where its Vulkan build is not there. */
async function llamaIn(file: string): Promise<Rates | undefined> {
  const args = ["--llama", file, "--prompt", flags.prompt, "--tokens", flags.tokens];
  const child = Bun.spawn([process.execPath, import.meta.path, ...args], { stdout: "pipe", stderr: "pipe" });
  const [out, error, code] = [
    await new Response(child.stdout).text(),
    await new Response(child.stderr).text(),
    await child.exited,
  ];
  if (code === 0) return JSON.parse(out.trim().split("\n").at(-1)!) as Rates; // what the child prints last
  console.log(`llama.cpp did not run: ${error.trim().split("\n").slice(-2).join(" ")}`);
  return undefined;
}

async function runLlama(file: string): Promise<Rates> {
  const { getLlama, LlamaLogLevel } = await import("node-llama-cpp");
  const binding = await getLlama({ gpu: "vulkan", build: "never", logLevel: LlamaLogLevel.error });
  const model = await binding.loadModel({ modelPath: file, gpuLayers: "max" });
  const context = await model.createContext({ contextSize: 2048, batchSize: Math.max(64, promptLen) });
  const sequence = context.getSequence();
  const ids = Array.from(prompt) as Parameters<typeof sequence.evaluateWithoutGeneratingNewTokens>[0]; // branded
  await sequence.evaluateWithoutGeneratingNewTokens(ids.slice(0, 64));
  await sequence.clearHistory();
  const prefillMs = await timeOf(() => sequence.evaluateWithoutGeneratingNewTokens(ids));
  let decoded = 0;
  const decodeMs = await timeOf(async () => {
    for await (const _ of sequence.evaluate(ids.slice(0, 1), { temperature: 0, yieldEogToken: true }))
      if (++decoded === tokens) return;
  });
  return { prefill: (1000 * promptLen) / prefillMs, decode: (1000 * decoded) / decodeMs };
}

/** Bytes of weights that one token reads: all but the embedding table, of which it reads a row, unless it is tied. */
async function weightBytesRead(device: Device, file: string): Promise<number> {
  return withPlan(device, file, async ({ few }, source) => {
    const read = few.dispatches.flatMap(({ source: { kernel, operands } }) =>
      kernel === "embed" ? [] : operands.flatMap((operand) => (operand.kind === "matrix" ? [operand.tensor] : [])),
    );
    return [...new Set(read)].reduce((sum, tensor) => sum + source(tensor).length, 0);
  });
}

/** Counts dispatches, times encoding, and the kernels themselves where the device can. */
async function profile(device: Device, file: string): Promise<void> {
  await withPlan(device, file, async ({ few, batch }) => {
    const { gpu } = device;
    gpu.queue.writeBuffer(batch, 0, Uint32Array.of(1, 1, 0, 0, 300, 0, promptLen, 0, 0, 1, 0, 0));
    const encodeMs: number[] = [];
    for (let i = 0; i < 20; i++) {
      const encoder = gpu.createCommandEncoder();
      const startedMs = performance.now();
      const pass = encoder.beginComputePass();
      for (const { pipeline, bindings, x, times, z } of few.dispatches) {
        pass.setPipeline(pipeline);
        pass.setBindGroup(0, bindings);
        pass.dispatchWorkgroups(x, times, z);
      }
      pass.end();
      encodeMs.push(performance.now() - startedMs);
      device.submit(encoder.finish());
      await device.flush();
    }
    const layers = few.dispatches.filter(({ source }) => source.kernel === "attention").length;
    const perLayer = (few.dispatches.length - 5) / layers; // embed, wanted rows (twice), final norm, output
    const encoding = `encoded in ${median(encodeMs).toFixed(2)} ms`;
    console.log(`${few.dispatches.length} dispatches per token, ${perLayer.toFixed(1)} per layer, ${encoding}`);
    if (gpu.features.has("timestamp-query")) console.table(await kernelTimes(device, few.dispatches));
  });
}

type Recorded = Awaited<ReturnType<typeof makePlan>>["few"]["dispatches"][number];

/** Milliseconds of a token by kernel: every dispatch in a pass of its own, between two timestamps. */
async function kernelTimes(device: Device, dispatches: readonly Recorded[]) {
  const { gpu } = device;
  const [count, size] = [2 * dispatches.length, 16 * dispatches.length];
  const querySet = gpu.createQuerySet({ type: "timestamp", count });
  const resolved = gpu.createBuffer({ size, usage: USAGE.copySrc | 0x200 }); // QUERY_RESOLVE
  const readable = gpu.createBuffer({ size, usage: USAGE.mapRead | USAGE.copyDst });
  const encoder = gpu.createCommandEncoder();
  for (const [i, { pipeline, bindings, x, times, z }] of dispatches.entries()) {
    const timestampWrites = { querySet, beginningOfPassWriteIndex: 2 * i, endOfPassWriteIndex: 2 * i + 1 };
    const pass = encoder.beginComputePass({ timestampWrites });
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, bindings);
    pass.dispatchWorkgroups(x, times, z);
    pass.end();
  }
  encoder.resolveQuerySet(querySet, 0, count, resolved, 0);
  encoder.copyBufferToBuffer(resolved, 0, readable, 0, size);
  device.submit(encoder.finish());
  await device.wait(readable.mapAsync(1));
  const stamps = new BigUint64Array(readable.getMappedRange());
  const byKernel: Record<string, { count: number; ms: number }> = {};
  for (const [i, { source }] of dispatches.entries()) {
    const entry = (byKernel[[source.kernel, ...(source.quants ?? [])].join(" ")] ??= { count: 0, ms: 0 });
    entry.count++;
    entry.ms += Number(stamps[2 * i + 1]! - stamps[2 * i]!) / 1e6;
  }
  for (const each of [querySet, resolved, readable]) each.destroy();
  return Object.fromEntries(Object.entries(byKernel).toSorted(([, a], [, b]) => b.ms - a.ms));
}

async function withPlan<T>(
  device: Device,
  file: string,
  use: (plan: Awaited<ReturnType<typeof makePlan>>, read: (tensor: string) => Uint8Array) => Promise<T>,
): Promise<T> {
  const gguf = openGguf(file);
  const program = loadProgram(gguf);
  const options = { ctxLen: 2048, slots: 1, precise: false, threads: 0, cacheDir: undefined };
  const plan = await makePlan(device, program, options);
  try {
    return await use(plan, (tensor) => program.weights.read(tensor));
  } finally {
    plan.destroy();
    gguf.close();
  }
}

/** Bytes per second that the device copies, counting what it reads. */
async function copyBandwidth(device: Device): Promise<number> {
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
  const ms = [await timeOf(copyAll), await timeOf(copyAll), await timeOf(copyAll)];
  from!.destroy();
  to!.destroy();
  return (2 * size * times * 1000) / median(ms); // read and written
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}

function medians(all: readonly Rates[]): Rates {
  return { prefill: median(all.map(({ prefill }) => prefill)), decode: median(all.map(({ decode }) => decode)) };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
}
