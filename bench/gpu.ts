/**
 * Hearth on the GPU, compared with llama.cpp's Vulkan build and ONNX Runtime's WebGPU provider on the same device and
 * files: prefill, decode, decode's share of the device's copy rate, and the time in each kernel. Makes its own models,
 * runs each side in a separate process, and continues without a side that cannot run, with the reason. Exits with 1
 * if Hearth itself failed on a file.
 *
 *   bun bench/gpu.ts [q4_0 q4_k_m f16 …] [--size tiny|1.2b|8b] [--rounds 3] [--minutes 9] [--json FILE]
 *   bun bench/gpu.ts --file FILE.gguf
 *
 * Needs only `bun install` and `bun install --cwd bench`; without the second there is no llama.cpp. A file takes at
 * most `--minutes`, so that 8 B files can be measured one call each: `bun bench/gpu.ts`, then `bun bench/gpu.ts q4_0
 * q4_k_m --size 8b`, then `bun bench/gpu.ts f16 --size 8b`. A software adapter only tests that everything runs (`--size
 * tiny`): its rates mean nothing.
 *
 * Hearth runs its fastest kernels, which the first file's run searches; HEARTH_GPU_KERNELS=plain or exact compares.
 */
import { mkdirSync, renameSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import type { AdapterReport, Answers, Rates, SideName, Traces, Work } from "./gpu-sides.ts";
import type { Products } from "./gpu-products.ts";
import { ensureModel, MIXES, SHAPES, type Mix, type Size } from "./make-model.ts";

/** Layers of the products: more weights than any cache holds, and few enough to be quick. */
const PRODUCT_LAYERS = 4;
/** Share of a file's time limit for one process: a process that hangs leaves time for the others. */
const SHARE = 0.3;
/** Maximum number of kernels shown for a pass. */
const KERNELS_SHOWN = 12;

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    size: { type: "string", default: "1.2b" },
    rounds: { type: "string", default: "3" },
    prompt: { type: "string", default: "512" },
    tokens: { type: "string", default: "64" },
    minutes: { type: "string", default: "9" }, // per file
    out: { type: "string", default: join(import.meta.dir, "out") }, // models are made here, and kept
    json: { type: "string", default: join(import.meta.dir, "out", "gpu-results.json") },
    file: { type: "string" }, // measures this file instead of generated models
  },
});

/** A side's result, or the reason why there is no result. */
type Outcome<T> = { readonly value: T } | { readonly reason: string };

/** The results for one file. */
interface Part {
  readonly name: string;
  readonly fileBytes: number;
  readonly prompt: number;
  readonly tokens: number;
  readonly rounds: Readonly<Record<"hearth" | "llama", readonly Rates[]>>;
  readonly reasons: Readonly<Record<string, string>>;
  readonly trace: Traces | undefined;
  readonly products: Products | undefined;
}

const adapter = await ask("adapter", { file: "", prompt: 0, tokens: 0 }, 2 * 60_000);
if ("reason" in adapter) throw new Error(`no GPU to measure: ${adapter.reason}`);
const parts = await main(adapter.value);
process.exit(parts.every(({ rounds }) => rounds.hearth.length > 0) ? 0 : 1);

/** Returns the result of each file. */
async function main(gpu: AdapterReport): Promise<Part[]> {
  if (!Object.hasOwn(SHAPES, flags.size)) throw new Error(`--size: expected ${Object.keys(SHAPES).join(", ")}`);
  const size = flags.size as Size; // checked above
  const mixes = flags.file ? [""] : positionals.length > 0 ? positionals : ["q4_0", "q4_k_m", "f16"];
  for (const mix of mixes)
    if (mix && !Object.hasOwn(MIXES, mix))
      throw new Error(`'${mix}': expected one of ${Object.keys(MIXES).join(", ")}`);
  console.log(`${gpu.name} (${gpu.software ? "software adapter: its rates mean nothing" : "GPU"})`);
  console.log(`copies ${(gpu.copyBytesPerSecond / 1e9).toFixed(1)} GB/s; ${gpu.features.join(" ")}`);
  const parts: Part[] = [];
  for (const mix of mixes) {
    const part = await measure(mix as Mix, size);
    parts.push(part);
    report(part, gpu);
    save({ adapter: gpu, parts });
  }
  console.log(`\nresults: ${flags.json}`);
  return parts;
}

async function measure(mix: Mix, size: Size): Promise<Part> {
  const startedMs = performance.now();
  const allMs = 60_000 * Number(flags.minutes);
  const left = (): number => Math.min(SHARE * allMs, allMs - (performance.now() - startedMs));
  const file = flags.file ?? (await ensureModel(mix, flags.out, size));
  console.log(
    `\n${flags.file ?? `${size} ${mix}`}: ready after ${((performance.now() - startedMs) / 1000).toFixed(1)} s`,
  );
  const work: Work = { file, prompt: Number(flags.prompt), tokens: Number(flags.tokens) };
  const reasons: Record<string, string> = {};
  const rounds: Record<"hearth" | "llama", Rates[]> = { hearth: [], llama: [] };
  const noted = <T>(side: string, outcome: Outcome<T>): T | undefined => {
    if ("value" in outcome) return outcome.value;
    console.log(`  ${side} did not run: ${outcome.reason}`);
    reasons[side] = outcome.reason;
    return undefined;
  };
  for (let round = 0; round < Number(flags.rounds); round++) {
    for (const side of ["hearth", "llama"] as const) {
      if (reasons[side]) continue;
      const rates = noted(side, await ask(side, work, left()));
      if (rates) rounds[side].push(rates);
    }
  }
  const trace = reasons["hearth"] ? undefined : noted("trace", await ask("trace", work, left()));
  const products = await productsOf(mix, size, { work, left, noted });
  return {
    name: flags.file ?? `${size} ${mix}`,
    fileBytes: statSync(file).size,
    prompt: work.prompt,
    tokens: work.tokens,
    rounds,
    reasons,
    trace,
    products,
  };
}

interface ProductsParts {
  readonly work: Work;
  left(): number;
  noted<T>(side: string, outcome: Outcome<T>): T | undefined;
}

async function productsOf(mix: Mix, size: Size, { work, left, noted }: ProductsParts): Promise<Products | undefined> {
  if (flags.file) return undefined;
  if (mix === "f16") return noted("onnx", { reason: "its graph would hold 8-bit weights, not float16" });
  const file = await ensureModel(mix, flags.out, size, { layers: Math.min(PRODUCT_LAYERS, SHAPES[size].nLayers) });
  return noted("onnx", await ask("products", { ...work, file }, left()));
}

/** Runs a side in a separate process, killed at its time limit. */
async function ask<Name extends SideName>(side: Name, work: Work, ms: number): Promise<Outcome<Answers[Name]>> {
  if (ms <= 0) return { reason: `no time was left of ${flags.minutes} minutes` };
  const args = [join(import.meta.dir, "gpu-sides.ts"), side, work.file, String(work.prompt), String(work.tokens)];
  // llama.cpp skips software adapters unless one is selected.
  const software = side === "llama" && "value" in adapter && adapter.value.software;
  const child = Bun.spawn([process.execPath, ...args], {
    env: { ...process.env, ORT_DISABLE_TELEMETRY: "1", ...(software && { GGML_VK_VISIBLE_DEVICES: "0" }) },
    stdio: ["ignore", "pipe", "pipe"],
    timeout: Math.ceil(ms),
    killSignal: "SIGKILL",
  });
  const [out, error, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  const last = out.trim().split("\n").at(-1) ?? "";
  if (code === 0 && last.startsWith("{")) return { value: JSON.parse(last) as Answers[Name] }; // the side's output
  if (child.signalCode === "SIGKILL") return { reason: `not done within ${(ms / 1000).toFixed(0)} s` };
  const said = Bun.stripANSI(error).trim().split("\n").slice(-3).join(" ");
  return { reason: said || `it ended with ${child.signalCode ?? code} and said nothing` };
}

function report({ name, fileBytes, prompt, tokens, rounds, trace, products }: Part, gpu: AdapterReport): void {
  const [hearth, llama] = [mediansOf(rounds.hearth), mediansOf(rounds.llama)];
  const count = `${rounds.hearth.length} and ${rounds.llama.length} rounds`;
  console.log(`${name}: ${(fileBytes / 1e9).toFixed(2)} GB, medians of ${count}, tokens/s`);
  console.table({
    [`prefill ${prompt}`]: rowOf(hearth.prefill, llama.prefill),
    [`decode ${tokens}`]: rowOf(hearth.decode, llama.decode),
  });
  if (trace) {
    const rate = trace.weightBytes * hearth.decode;
    const share = (100 * rate) / gpu.copyBytesPerSecond;
    const bytes = `${(trace.weightBytes / 1e9).toFixed(3)} GB of weights per token`;
    console.log(`decode reads ${bytes}, ${(rate / 1e9).toFixed(1)} GB/s: ${share.toFixed(0)} % of copying`);
    for (const [pass, { dispatches, encodeMs, kernels }] of [
      ["decode", trace.decode],
      ["prefill", trace.prefill],
    ] as const) {
      const sum = kernels.reduce((total, { ms }) => total + ms, 0);
      const stamped = kernels.length > 0 ? `kernels ${sum.toFixed(2)} ms` : "no timestamps on this device";
      console.log(`${pass}: ${dispatches} dispatches, encoded in ${encodeMs.toFixed(2)} ms, ${stamped}`);
      if (kernels.length > 0)
        console.table(kernels.slice(0, KERNELS_SHOWN).map((each) => ({ ...each, ms: shortened(each.ms) })));
    }
  }
  if (!products) return;
  const apart = products.nmse.toExponential(1);
  console.log(`products of ${PRODUCT_LAYERS} layers and the output beside ONNX Runtime, NMSE ${apart}, rows/s`);
  console.table({
    "one row": beside(1, products.hearth.oneRowMs, products.onnx.oneRowMs),
    [`${prompt} rows`]: beside(prompt, products.hearth.allRowsMs, products.onnx.allRowsMs),
  });
}

function beside(rows: number, hearthMs: number, onnxMs: number) {
  const [hearth, onnx] = [hearthMs, onnxMs].map((ms) => shortened((1000 * rows) / ms));
  return { hearth, onnx, ratio: shortened(onnxMs / hearthMs) };
}

function shortened(value: number): number {
  return Number(value.toPrecision(4));
}

function rowOf(hearth: number, llama: number) {
  return { hearth: shortened(hearth), llama: shortened(llama), ratio: shortened(hearth / llama) };
}

function mediansOf(all: readonly Rates[]): Pick<Rates, "prefill" | "decode"> {
  const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
  return { prefill: median(all.map(({ prefill }) => prefill)), decode: median(all.map(({ decode }) => decode)) };
}

/** Called after each part, so that a stopped run leaves its results. */
function save(results: { adapter: AdapterReport; parts: readonly Part[] }): void {
  mkdirSync(dirname(flags.json), { recursive: true });
  const partial = `${flags.json}.partial`;
  writeFileSync(partial, JSON.stringify({ bun: Bun.version, ...results }, null, 2));
  renameSync(partial, flags.json);
}
