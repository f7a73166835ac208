/**
 * The SIMD kernels against llama.cpp's own programs on the same files and cores, alternated, each run in a process of
 * its own: prompts, decode, long contexts, streams, and the share of the memory's bandwidth that decode reaches.
 * Figures are medians of the rounds; a machine with other work gives none worth quoting, so the load is printed too.
 *
 *   bun bench/simd-peers.ts --llama FOLDER [--rounds 3] [--threads N] [--out FOLDER] [--only files,contexts,streams]
 *     [--contexts 4096,16384] [--prompt 512] [--tokens 32] [--level vnni] [--json FILE]
 *
 * FOLDER holds llama-bench and llama-batched-bench, built for this CPU; their libraries are looked for there too.
 */
import { writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { physicalCores } from "../src/backend/onnx/threads.ts";
import { openGguf } from "../src/files/gguf.ts";
import { ensureModel, type Mix, type Size } from "./make-model.ts";

const { values: flags } = parseArgs({
  options: {
    llama: { type: "string" },
    rounds: { type: "string", default: "3" },
    threads: { type: "string", default: String(physicalCores()) },
    out: { type: "string", default: join(import.meta.dir, "out") },
    only: { type: "string", default: "files,contexts,streams" },
    contexts: { type: "string", default: "4096,16384" },
    prompt: { type: "string", default: "512" },
    tokens: { type: "string", default: "32" },
    level: { type: "string" },
    json: { type: "string" },
  },
});
const { llama } = flags;
if (!llama) throw new Error("usage: bun bench/simd-peers.ts --llama FOLDER_OF_LLAMA_BENCH");

const FILES: readonly (readonly [Mix, Size])[] = [
  ["q4_0", "1.2b"],
  ["q8_0", "1.2b"],
  ["q4_k_m", "1.2b"],
  ["q4_0", "moe"],
  ["q4_k_m", "moe"],
];

interface Rates {
  readonly prompt: number;
  readonly decode: number;
}
interface Row {
  readonly what: string;
  readonly ours: Rates;
  readonly theirs: Rates;
  /** Bytes of weights that a token reads. */
  readonly bytes: number;
}

async function run(command: readonly string[]): Promise<string> {
  const env = { ...process.env, LD_LIBRARY_PATH: [llama, process.env["LD_LIBRARY_PATH"]].filter(Boolean).join(":") };
  const child = Bun.spawn([...command], { env, stdout: "pipe", stderr: "pipe" });
  const [out, errors, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(`${command.join(" ")}: ended with ${code}: ${errors.slice(-500)}`);
  return out;
}

interface Load {
  readonly depth?: number;
  readonly streams?: number;
}

async function ours(file: string, { depth = 0, streams = 1 }: Load): Promise<Rates> {
  const numbers = {
    prompt: streams > 1 ? "64" : flags.prompt,
    tokens: flags.tokens,
    threads: flags.threads,
    depth,
    streams,
  };
  const given = Object.entries(numbers).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const level = flags.level ? ["--level", flags.level] : [];
  const command = [process.execPath, join(import.meta.dir, "simd.ts"), file, ...given, ...level, "--json"];
  const { promptRate, decodeRate } = JSON.parse(await run(command)) as { promptRate: number; decodeRate: number };
  return { prompt: promptRate, decode: decodeRate };
}

async function theirs(file: string, { depth = 0, streams = 1 }: Load): Promise<Rates> {
  const common = ["-m", file, "-t", flags.threads];
  if (streams > 1) {
    const sizes = ["-npp", "64", "-ntg", flags.tokens, "-npl", String(streams), "-c", String(streams * 128)];
    const lines = await run([join(llama!, "llama-batched-bench"), ...common, ...sizes, "--output-format", "jsonl"]);
    const line = lines.split("\n").find((each) => each.startsWith("{"));
    const { speed_pp, speed_tg } = JSON.parse(line ?? "{}") as { speed_pp: number; speed_tg: number };
    return { prompt: speed_pp, decode: speed_tg };
  }
  const sizes = ["-p", flags.prompt, "-n", flags.tokens, "-d", String(depth), "-r", "1", "-o", "json"];
  const tests = JSON.parse(await run([join(llama!, "llama-bench"), ...common, ...sizes])) as {
    n_gen: number;
    avg_ts: number;
  }[];
  const rate = (isDecode: boolean): number => tests.find(({ n_gen }) => n_gen > 0 === isDecode)?.avg_ts ?? Number.NaN;
  return { prompt: rate(false), decode: rate(true) };
}

const median = (numbers: readonly number[]): number => numbers.toSorted((a, b) => a - b)[numbers.length >> 1]!;
const medians = (rates: readonly Rates[]): Rates => {
  return { prompt: median(rates.map(({ prompt }) => prompt)), decode: median(rates.map(({ decode }) => decode)) };
};

async function compare(what: string, file: string, load: Load, rounds = Number(flags.rounds)): Promise<Row> {
  const [left, right]: [Rates[], Rates[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    left.push(await ours(file, load));
    right.push(await theirs(file, load));
  }
  const row = { what, ours: medians(left), theirs: medians(right), bytes: bytesPerToken(file) };
  print(row);
  return row;
}

/** Of a mixture only the experts that a token goes to are read. */
function bytesPerToken(file: string): number {
  const gguf = openGguf(file);
  const count = (name: string): number => Number(gguf.metadata.get(`qwen3moe.${name}`) ?? 1);
  const share = count("expert_used_count") / count("expert_count");
  let bytes = 0;
  for (const { name, byteLength } of gguf.tensors.values()) bytes += byteLength * (name.includes("_exps") ? share : 1);
  gguf.close();
  return bytes;
}

/** All threads' together: each reads memory of its own. */
async function readBandwidth(threads: number): Promise<number> {
  const source = `const memory = Buffer.alloc(256 * 2 ** 20, 1);
    let best = 0;
    self.onmessage = () => {
      for (let i = 0; i < 6; i++) {
        const start = Bun.nanoseconds();
        memory.indexOf(0);
        best = Math.max(best, memory.length / ((Bun.nanoseconds() - start) / 1e9));
      }
      self.postMessage(best);
    };
    self.postMessage(0);`;
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const workers = Array.from({ length: threads }, () => new Worker(url));
  const next = (worker: Worker): Promise<number> =>
    new Promise((resolve) => void (worker.onmessage = ({ data }) => resolve(data as number))); // it posts numbers
  await Promise.all(workers.map(next));
  const rates = workers.map(next);
  for (const worker of workers) worker.postMessage(0);
  const all = (await Promise.all(rates)).reduce((sum, rate) => sum + rate, 0);
  for (const worker of workers) worker.terminate();
  return all;
}

function print({ what, ours: a, theirs: b, bytes }: Row): void {
  const pair = (x: number, y: number): string => `${x.toFixed(1)} / ${y.toFixed(1)} = ${(x / y).toFixed(2)}`;
  const share = `${Math.round((100 * a.decode * bytes) / bandwidth)} %`;
  const cells = [what.padEnd(28), pair(a.prompt, b.prompt).padEnd(26), pair(a.decode, b.decode).padEnd(26), share];
  console.log(`${cells.join(" ")}  load ${loadavg()[0]!.toFixed(1)}`);
}

const only = new Set(flags.only.split(","));
const bandwidth = await readBandwidth(Number(flags.threads));
console.log(
  `${cpus()[0]?.model ?? "a CPU"}, ${flags.threads} threads, which read ${(bandwidth / 1e9).toFixed(1)} GB/s`,
);
console.log(
  "tokens per second, ours / llama.cpp: prompt, decode; share of that bandwidth (streams: of one token's bytes)",
);
const rows: Row[] = [];
const fileOf = (mix: Mix, size: Size): Promise<string> => ensureModel(mix, flags.out, size);
if (only.has("files")) {
  for (const [mix, size] of FILES) rows.push(await compare(`${size} ${mix}`, await fileOf(mix, size), {}));
}
const file = await fileOf("q4_0", "1.2b");
if (only.has("streams")) {
  for (const streams of [2, 4, 8, 16]) rows.push(await compare(`1.2b q4_0, ${streams} streams`, file, { streams }));
}
if (only.has("contexts")) {
  for (const depth of flags.contexts.split(",").map(Number))
    rows.push(await compare(`1.2b q4_0 behind ${depth}`, file, { depth }, 1));
}
if (flags.json) writeFileSync(flags.json, JSON.stringify({ bandwidth, threads: flags.threads, rows }, null, 2));
process.exit(0);
