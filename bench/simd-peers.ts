/**
 * The SIMD kernels against llama.cpp's own programs on the same files and cores, alternated, each run in a process of
 * its own. Figures are medians of the rounds; a machine with other work gives none worth quoting: the load is printed.
 * Each part can run alone, in less than ten minutes on two idle cores:
 *
 *   files       prompts of 512 and decode, five files; the share of the memory's bandwidth that decode reaches
 *   streams     2 to 16 of them, and how many times the rate of one 8 have
 *   contexts    whole prompts of 4,096 and 16,384, and decode behind them
 *   avx2        prompts at the AVX2 level, against what llama.cpp has for this CPU
 *   embeddings  256 texts of 128 tokens, BERT base, in one call to a server
 *   busy        decode beside one loop for each core that does nothing else
 *
 *   bun bench/simd-peers.ts --llama FOLDER [--parts files,contexts,…] [--rounds 3] [--threads N] [--out FOLDER]
 *     [--contexts 4096,16384] [--prompt 512] [--tokens 32] [--texts 256] [--streams 1,8] [--level vnni] [--json FILE]
 *
 * --llama: the folder of llama-bench, llama-batched-bench and llama-server, built for this CPU.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { physicalCores } from "../src/backend/onnx/threads.ts";
import { openGguf } from "../src/files/gguf.ts";
import { wordOf } from "../test/arch/encoders.ts";
import { startHearth } from "../test/e2e/hearth.ts";
import { ensureEncoder } from "./encoder-file.ts";
import { installFile } from "./install-file.ts";
import { llamaPrograms, median, outputOf, type Rates } from "./llama-programs.ts";
import { ensureModel, type Mix, type Size } from "./make-model.ts";

const PARTS = { files, streams, contexts, avx2, embeddings, busy };

const { values: flags } = parseArgs({
  options: {
    llama: { type: "string" },
    rounds: { type: "string", default: "3" },
    threads: { type: "string", default: String(physicalCores()) },
    out: { type: "string", default: join(import.meta.dir, "out") },
    parts: { type: "string", default: Object.keys(PARTS).join() },
    contexts: { type: "string", default: "4096,16384" },
    prompt: { type: "string", default: "512" },
    tokens: { type: "string", default: "32" },
    texts: { type: "string", default: "256" },
    streams: { type: "string", default: "1,2,4,8,16" },
    level: { type: "string" },
    json: { type: "string" },
  },
});
if (!flags.llama) throw new Error("usage: bun bench/simd-peers.ts --llama FOLDER_OF_LLAMA_BENCH");
const threads = Number(flags.threads);
const theirs = llamaPrograms(flags.llama, threads);
const usual = { prompt: Number(flags.prompt), tokens: Number(flags.tokens) };

interface Sizes {
  readonly prompt: number;
  readonly tokens: number;
  readonly streams?: number;
  readonly rounds?: number;
  readonly level?: string | undefined;
}
interface Row {
  readonly what: string;
  readonly ours: Rates;
  readonly theirs: Rates;
  /** Bytes of weights that a token reads. */
  readonly bytes?: number;
}

const begun = Object.entries(PARTS).filter(([name]) => flags.parts.split(",").includes(name));
if (begun.length === 0) throw new Error(`--parts ${flags.parts}: expected some of ${Object.keys(PARTS).join()}`);
const bandwidth = await readBandwidth(threads);
console.log(`${cpus()[0]?.model ?? "a CPU"}, ${threads} threads, which read ${(bandwidth / 1e9).toFixed(1)} GB/s`);
console.log("tokens per second, ours / llama.cpp: prompt, decode; share of that bandwidth, for one stream's bytes");
const rows: Row[] = [];
for (const [, part] of begun) await part();
if (flags.json) writeFileSync(flags.json, JSON.stringify({ bandwidth, threads, rows }, null, 2));
process.exit(0);

async function files(): Promise<void> {
  for (const [mix, size] of [
    ["q4_0", "1.2b"],
    ["q8_0", "1.2b"],
    ["q4_k_m", "1.2b"],
    ["q4_0", "moe"],
    ["q4_k_m", "moe"],
  ] as const) {
    const file = await fileOf(mix, size);
    const bytes = bytesPerToken(file);
    await compare(`${size} ${mix}`, { ours: () => ours(file, usual), theirs: () => bench(file, usual), bytes });
  }
}

async function streams(): Promise<void> {
  const file = await fileOf("q4_0");
  const rates = new Map<number, number>();
  for (const count of flags.streams.split(",").map(Number)) {
    const sizes = { ...usual, prompt: 64, streams: count };
    const runs = { ours: () => ours(file, sizes), theirs: () => theirs.batched(file, sizes) };
    const { ours: rate } = await compare(`1.2b q4_0, ${count} streams`, { ...runs, bytes: bytesPerToken(file) });
    rates.set(count, rate.decode);
  }
  const [one, eight] = [rates.get(1), rates.get(8)];
  if (one && eight) console.log(`8 streams: ${(eight / one).toFixed(2)} times the rate of one`);
}

/** One round each: a prompt of 16,384 takes minutes. */
async function contexts(): Promise<void> {
  const file = await fileOf("q4_0");
  for (const prompt of flags.contexts.split(",").map(Number)) {
    const sizes = { ...usual, prompt, streams: 1 };
    const runs = { ours: () => ours(file, { ...sizes, rounds: 1 }), theirs: () => theirs.batched(file, sizes) };
    await compare(`1.2b q4_0, ${prompt} positions`, { ...runs, bytes: bytesPerToken(file) }, 1);
  }
}

async function avx2(): Promise<void> {
  for (const mix of ["q4_0", "q8_0", "q4_k_m"] as const) {
    const file = await fileOf(mix);
    const sizes = { ...usual, level: "avx2" };
    await compare(`1.2b ${mix}, ours with AVX2`, { ours: () => ours(file, sizes), theirs: () => bench(file, usual) });
  }
}

async function busy(): Promise<void> {
  const file = await fileOf("q4_0");
  const sizes = { prompt: 0, tokens: 8, rounds: 1 };
  const loops = Array.from({ length: threads }, () =>
    Bun.spawn([process.execPath, "-e", "for (;;);"], { stdout: "ignore", stderr: "ignore" }),
  );
  try {
    const runs = { ours: () => ours(file, sizes), theirs: () => theirs.bench(file, sizes) };
    await compare(`1.2b q4_0, ${threads} busy loops`, runs);
  } finally {
    for (const loop of loops) loop.kill();
  }
}

/** Through both servers, the way people embed. */
async function embeddings(): Promise<void> {
  const [count, words] = [Number(flags.texts), 126]; // and the tokens that a text begins and ends with
  const texts = Array.from({ length: count }, (_, i) =>
    Array.from({ length: words }, (__, at) => wordOf((i * 7919 + at * 104_729) % 20_000)).join(" "),
  );
  for (const quant of ["f16", "q8_0"] as const) {
    const file = await ensureEncoder("base", quant, flags.out);
    const home = mkdtempSync(join(tmpdir(), "hearth-simd-peers-"));
    const model = await installFile({ root: join(home, ".hearth", "models"), file, name: "bench" });
    const hearth = await startHearth({ home });
    const peer = await theirs.embedder(file, { tokens: words + 2 });
    const embed = async (input: readonly string[]): Promise<number> => {
      const response = await hearth.post("/api/embed", { model, input });
      if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
      return ((await response.json()) as { prompt_eval_count: number }).prompt_eval_count;
    };
    try {
      await Promise.all([embed(texts.slice(0, 1)), peer.embed(texts.slice(0, 1))]); // loads
      await compare(`BERT base ${quant}, ${count} texts`, {
        ours: () => promptRate(() => embed(texts)),
        theirs: () => promptRate(() => peer.embed(texts)),
      });
    } finally {
      peer.stop();
      await hearth.stop();
      rmSync(home, { recursive: true, force: true });
    }
  }
}

/** @param work returns how many tokens it read */
async function promptRate(work: () => Promise<number>): Promise<Rates> {
  const startedMs = performance.now();
  const tokens = await work();
  return { prompt: (tokens * 1000) / (performance.now() - startedMs), decode: Number.NaN };
}

function bench(file: string, sizes: Sizes): Promise<Rates> {
  return theirs.bench(file, { rounds: 3, ...sizes });
}
function fileOf(mix: Mix, size: Size = "1.2b"): Promise<string> {
  return ensureModel(mix, flags.out, size);
}

async function ours(file: string, { level = flags.level, ...sizes }: Sizes): Promise<Rates> {
  const numbers = Object.entries({ ...sizes, threads }).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const given = [join(import.meta.dir, "simd.ts"), file, ...numbers, ...(level ? ["--level", level] : []), "--json"];
  const child = Bun.spawn([process.execPath, ...given], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const figures = JSON.parse(await outputOf(child, "simd.ts")) as { promptRate: number; decodeRate: number };
  return { prompt: figures.promptRate, decode: figures.decodeRate };
}

interface Runs {
  readonly ours: () => Promise<Rates>;
  readonly theirs: () => Promise<Rates>;
  readonly bytes?: number;
}

async function compare(what: string, runs: Runs, rounds = Number(flags.rounds)): Promise<Row> {
  const [left, right]: [Rates[], Rates[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    left.push(await runs.ours());
    right.push(await runs.theirs());
  }
  const row = { what, ours: medians(left), theirs: medians(right), ...(runs.bytes ? { bytes: runs.bytes } : {}) };
  rows.push(row);
  print(row);
  return row;
}

function medians(rates: readonly Rates[]): Rates {
  return { prompt: median(rates.map(({ prompt }) => prompt)), decode: median(rates.map(({ decode }) => decode)) };
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
  const pair = (x: number, y: number): string =>
    Number.isNaN(x - y) ? "" : `${x.toFixed(1)} / ${y.toFixed(1)} = ${(x / y).toFixed(2)}`;
  const share = bytes ? `${Math.round((100 * a.decode * bytes) / bandwidth)} %` : "";
  const cells = [what.padEnd(28), pair(a.prompt, b.prompt).padEnd(26), pair(a.decode, b.decode).padEnd(26), share];
  console.log(`${cells.join(" ")}  load ${loadavg()[0]!.toFixed(1)}`);
}
