/**
 * Compares the SIMD kernels with the programs of llama.cpp, of ik_llama.cpp or of both, on the same files and cores,
 * alternated, each run in a separate process. Figures are medians of the rounds; a busy machine gives none worth
 * quoting: the load is printed. Each part can run alone, in less than ten minutes on two idle cores:
 *
 *   files       prompts of 512 and decode, five files; decode's share of the memory bandwidth
 *   large       the same of an 8 B shape
 *   streams     2 to 16 of them, and the rate of 8 relative to one; the same five files
 *   served      answers of 1 and 8 clients through both servers
 *   contexts    whole prompts of 4,096 and 16,384, and decode after them
 *   embeddings  256 texts of 128 tokens, BERT base, in one call to a server
 *   busy        decode with one busy loop per core
 *
 *   bun bench/simd-peers.ts [--llama FOLDER] [--ik FOLDER] [--parts files,contexts,…] [--rounds 3] [--threads N]
 *     [--out FOLDER] [--contexts 4096,16384] [--prompt 512] [--tokens 32] [--texts 256] [--streams 1,8]
 *     [--level vnni] [--kv f16,q8_0,q4_0] [--ik-flash] [--record]
 *
 * --llama, --ik: the folders of llama-bench, llama-batched-bench and llama-server, built for this CPU; README.md says
 * how. ik_llama.cpp's server is not used, and its flash attention with --ik-flash. --record: writes the figures to
 * bench/records/, from which `bun bench/report.ts` makes the report.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { physicalCores } from "../src/engine/backends/onnx/threads.ts";
import { openGguf } from "../src/engine/formats/files/gguf.ts";
import { wordOf } from "../test/engine/architectures/encoders.ts";
import { startHearth } from "../test/e2e/hearth.ts";
import { ensureEncoder } from "./encoder-file.ts";
import { installFile } from "./install-file.ts";
import {
  llamaPrograms,
  median,
  outputOf,
  type LlamaPrograms,
  type ProgramOptions,
  type Project,
  type Rates,
} from "./llama-programs.ts";
import { ensureModel, type Mix, type Size } from "./make-model.ts";
import { ask, withServer, words } from "./streamed.ts";
import { readBandwidth, writeRecord, type Figure, type Goal } from "./report/record.ts";

const PARTS = { files, large, streams, served, contexts, embeddings, busy };

const { values: flags } = parseArgs({
  options: {
    llama: { type: "string" },
    ik: { type: "string" },
    "ik-flash": { type: "boolean", default: false },
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
    kv: { type: "string", default: "f16,q8_0,q4_0" },
    record: { type: "boolean", default: false },
  },
});
if (!flags.llama && !flags.ik) throw new Error("usage: bun bench/simd-peers.ts --llama FOLDER_OF_LLAMA_BENCH");
const threads = Number(flags.threads);
const projects = new Map<Project, LlamaPrograms>();
addProject(flags.llama, { threads });
addProject(flags.ik, { threads, project: "ik_llama.cpp", flash: flags["ik-flash"] });
const usual = { prompt: Number(flags.prompt), tokens: Number(flags.tokens) };

interface Sizes {
  readonly prompt: number;
  readonly tokens: number;
  readonly streams?: number;
  readonly rounds?: number;
  readonly level?: string | undefined;
  readonly kv?: string;
}
/** Relative to a peer's rate. */
type Goals = Partial<Record<keyof Rates, number>>;
/** Goals for one stream. */
const BESIDE_IK: Goals = { prompt: 1.5, decode: 1.05 };

interface Runs {
  readonly ours: () => Promise<Rates>;
  readonly theirs: ReadonlyMap<Project, () => Promise<Rates>>;
  /** The program of the peers' figures. */
  readonly peer: string;
  /** Bytes of weights that a token reads. */
  readonly bytes?: number;
  readonly goals?: Partial<Record<Project, Goals>>;
}

function addProject(folder: string | undefined, options: ProgramOptions): void {
  if (folder) projects.set(options.project ?? "llama.cpp", llamaPrograms(folder, options));
}

const byPeers = (run: (programs: LlamaPrograms) => Promise<Rates>): Runs["theirs"] =>
  new Map([...projects].map(([project, programs]) => [project, () => run(programs)]));

const byLlama = (run: () => Promise<Rates>): Runs["theirs"] => new Map([["llama.cpp", run]]);

/** llama.cpp's programs, for its server. */
function llama(): LlamaPrograms {
  const programs = projects.get("llama.cpp");
  if (!programs) throw new Error("parts with a server need --llama");
  return programs;
}

const TITLES: Readonly<Record<keyof typeof PARTS, string>> = {
  files: "Prompts and decode, by file",
  large: "Prompts and decode of an 8 B shape",
  streams: "Several streams",
  served: "Several clients, through both servers",
  contexts: "Long contexts",
  embeddings: "Embeddings through both servers",
  busy: "Beside other work",
};

/** Each file with its goal of decode relative to llama.cpp. */
const FILES = [
  ["q4_0", "1.2b", 1.1],
  ["q8_0", "1.2b", 1.1],
  ["q4_k_m", "1.2b", 1],
  ["q4_0", "moe", 1],
  ["q4_k_m", "moe", 1],
] as const;

const begun = Object.entries(PARTS).filter(([name]) => flags.parts.split(",").includes(name));
if (begun.length === 0) throw new Error(`--parts ${flags.parts}: expected some of ${Object.keys(PARTS).join()}`);
const bandwidth = await readBandwidth(threads);
console.log(`${cpus()[0]?.model ?? "a CPU"}, ${threads} threads, which read ${(bandwidth / 1e9).toFixed(1)} GB/s`);
console.log(
  "tokens per second, ours / a peer's: prompt, decode; share of the bandwidth beside it, for one stream's bytes",
);
let figures: Figure[] = [];
for (const [name, part] of begun) {
  figures = [];
  await part();
  const title = TITLES[name as keyof typeof PARTS]; // a key of PARTS
  const level = flags.level;
  const kept = level ? { name: `${name}-${level}`, title: `${title}, level ${level}` } : { name, title };
  if (flags.record) writeRecord(kept.name, { title: kept.title, figures, bandwidth });
}
process.exit(0);

async function files(): Promise<void> {
  for (const [mix, size, decode] of FILES) {
    const file = await fileOf(mix, size);
    const runs = { ours: () => ours(file, usual), theirs: bench(file, usual), peer: "llama-bench" };
    const goals = { "llama.cpp": { prompt: 2, decode }, "ik_llama.cpp": BESIDE_IK };
    await compare(`${size} ${mix}`, { ...runs, bytes: bytesPerToken(file), goals });
  }
}

async function streams(): Promise<void> {
  const all = flags.streams.split(",").map(Number);
  for (const [index, [mix, size]] of FILES.entries())
    await streamsOf(
      await fileOf(mix, size),
      `${size} ${mix}`,
      index === 0 ? all : all.filter((n) => n === 1 || n === 8),
    );
}

async function streamsOf(file: string, name: string, counts: readonly number[]): Promise<void> {
  const rates = new Map<number, readonly number[]>();
  for (const count of counts) {
    const sizes = { ...usual, prompt: 64, streams: count };
    const peer = "llama-batched-bench";
    const runs = { ours: () => ours(file, sizes), theirs: byPeers((programs) => programs.batched(file, sizes)), peer };
    const both = { "llama.cpp": { decode: 1.6 }, "ik_llama.cpp": { decode: 1.3 } };
    const goals = count === 8 ? both : {};
    const rounds = await compare(`${name}, ${count} streams`, { ...runs, goals });
    rates.set(
      count,
      rounds.map(({ decode }) => decode),
    );
  }
  const [one, eight] = [rates.get(1), rates.get(8)];
  if (!one || !eight) return;
  const times = eight.map((rate, round) => rate / one[round]!);
  console.log(`${name}, 8 streams: ${median(times).toFixed(2)} times the rate of one`);
  const goal: Goal = { of: "value", atLeast: 3 };
  figures.push({ what: `${name}, 8 streams to one`, measure: "decode", unit: "times", ours: times, goal });
}

async function large(): Promise<void> {
  const file = await fileOf("q4_0", "8b");
  const runs = { ours: () => ours(file, usual), theirs: bench(file, usual), peer: "llama-bench" };
  const goals = { "llama.cpp": { prompt: 2, decode: 1 }, "ik_llama.cpp": BESIDE_IK };
  await compare("8b q4_0", { ...runs, bytes: bytesPerToken(file), goals });
}

/** Tokens of all clients' answers, divided by the time until the last one. */
async function served(): Promise<void> {
  const file = await fileOf("q4_0");
  const [tokens, most] = [64, 8];
  await withServer(
    file,
    async ({ start, model }) => {
      const hearth = await start();
      const peer = await llama().server(file, { streams: most, ctxLen: 512 });
      const options = { temperature: 1, top_k: 40, seed: 1, num_predict: tokens };
      const answer = async (prompt: string): Promise<number> =>
        Number((await ask(hearth, "/api/generate", { model, prompt, raw: true, options })).end["eval_count"]);
      let asked = 0;
      const rate = (clients: number, one: (prompt: string) => Promise<number>) => async (): Promise<Rates> => {
        const prompts = Array.from({ length: clients }, () => `${++asked}: ${words(asked, 12)}`);
        const startedMs = performance.now();
        const counts = await Promise.all(prompts.map(one));
        const sum = counts.reduce((a, b) => a + b, 0);
        return { prompt: Number.NaN, decode: (sum * 1000) / (performance.now() - startedMs) };
      };
      try {
        await Promise.all([answer("warm"), peer.answer("warm", 4)]);
        for (const clients of [1, most]) {
          const answers = rate(clients, (prompt) => peer.answer(prompt, tokens));
          const runs = { ours: rate(clients, answer), theirs: byLlama(answers) };
          const goals = clients === most ? { "llama.cpp": { decode: 1.3 } } : {};
          await compare(`1.2b q4_0, ${clients} clients`, { ...runs, peer: "llama-server", goals });
        }
      } finally {
        peer.stop();
      }
    },
    { HEARTH_NUM_PARALLEL: String(most) },
  );
}

/**
 * One round each: a prompt of 16,384 takes minutes. Each level and format of the cache beside one run of each peer,
 * whose cache is f16. Shares count weights and cache.
 */
async function contexts(): Promise<void> {
  const file = await fileOf("q4_0");
  const levels = flags.level ? [flags.level] : [undefined, "avx2"];
  for (const prompt of flags.contexts.split(",").map(Number)) {
    const sizes = { ...usual, prompt, streams: 1 };
    const theirs = new Map<Project, () => Promise<Rates>>();
    for (const [project, programs] of projects) {
      const rates = await programs.batched(file, sizes);
      theirs.set(project, () => Promise.resolve(rates));
    }
    for (const level of levels) {
      for (const kv of flags.kv.split(",")) {
        const runs = {
          ours: () => ours(file, { ...sizes, rounds: 1, level, kv }),
          theirs,
          peer: "llama-batched-bench",
        };
        const goals = { "llama.cpp": { prompt: 1.5, decode: 1.1 }, "ik_llama.cpp": BESIDE_IK };
        const what = `1.2b q4_0, ${prompt} positions${kv === "f16" ? "" : `, ${kv} cache`}${level ? `, ${level}` : ""}`;
        const bytes = bytesPerToken(file) + prompt * cacheBytes(file, kv);
        await compare(what, { ...runs, bytes, ...(kv === "f16" && !level && { goals }) }, 1);
      }
    }
  }
}

/** Bytes of a position's keys and values of a `llama` file; groups of 32 values have a scale of 4 bytes, or 2. */
function cacheBytes(file: string, kv: string): number {
  const gguf = openGguf(file);
  const count = (name: string): number => Number(gguf.metadata.get(`llama.${name}`));
  const [heads, width] = [count("attention.head_count_kv"), count("embedding_length") / count("attention.head_count")];
  const values = 2 * count("block_count") * heads * width;
  gguf.close();
  return values * (kv === "q4_0" ? 18 / 32 : kv === "q8_0" ? 36 / 32 : 2);
}

async function busy(): Promise<void> {
  const file = await fileOf("q4_0");
  const sizes = { prompt: 0, tokens: usual.tokens, rounds: 1 };
  const loops = Array.from({ length: threads }, () =>
    Bun.spawn([process.execPath, "-e", "for (;;);"], { stdout: "ignore", stderr: "ignore" }),
  );
  try {
    const runs = { ours: () => ours(file, sizes), theirs: bench(file, sizes), peer: "llama-bench" };
    await compare(`1.2b q4_0, ${threads} busy loops`, { ...runs, goals: { "llama.cpp": { decode: 3 } } });
  } finally {
    for (const loop of loops) loop.kill();
  }
}

/** Through both servers, which is the usual way to embed. */
async function embeddings(): Promise<void> {
  const [count, words] = [Number(flags.texts), 126]; // without the tokens that begin and end a text
  const texts = Array.from({ length: count }, (_, i) =>
    Array.from({ length: words }, (__, at) => wordOf((i * 7919 + at * 104_729) % 20_000)).join(" "),
  );
  for (const quant of ["f16", "q8_0"] as const) {
    const file = await ensureEncoder("base", quant, flags.out);
    const home = mkdtempSync(join(tmpdir(), "hearth-simd-peers-"));
    const model = await installFile({ root: join(home, ".hearth", "models"), file, name: "bench" });
    const hearth = await startHearth({ home });
    const peer = await llama().embedder(file, { tokens: words + 2 });
    const embed = async (input: readonly string[]): Promise<number> => {
      const response = await hearth.post("/api/embed", { model, input });
      if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
      return ((await response.json()) as { prompt_eval_count: number }).prompt_eval_count;
    };
    try {
      await Promise.all([embed(texts.slice(0, 1)), peer.embed(texts.slice(0, 1))]); // loads
      await compare(`BERT base ${quant}, ${count} texts`, {
        ours: () => promptRate(() => embed(texts)),
        theirs: byLlama(() => promptRate(() => peer.embed(texts))),
        peer: "llama-server",
        goals: { "llama.cpp": { prompt: 1.5 } },
      });
    } finally {
      peer.stop();
      await hearth.stop();
      rmSync(home, { recursive: true, force: true });
    }
  }
}

/** @param work returns the number of tokens that it read */
async function promptRate(work: () => Promise<number>): Promise<Rates> {
  const startedMs = performance.now();
  const tokens = await work();
  return { prompt: (tokens * 1000) / (performance.now() - startedMs), decode: Number.NaN };
}

function bench(file: string, sizes: Sizes): Runs["theirs"] {
  return byPeers((programs) => programs.bench(file, { rounds: 3, ...sizes }));
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

/** @returns our figures of each round */
async function compare(what: string, runs: Runs, rounds = Number(flags.rounds)): Promise<Rates[]> {
  const left: Rates[] = [];
  const bandwidths: number[] = [];
  const right = new Map([...runs.theirs.keys()].map((project): [Project, Rates[]] => [project, []]));
  for (let round = 0; round < rounds; round++) {
    left.push(await runs.ours());
    if (runs.bytes) bandwidths.push(await readBandwidth(threads)); // on virtual machines it changes within minutes
    for (const [project, run] of runs.theirs) right.get(project)!.push(await run());
  }
  for (const [project, rates] of right) {
    const parts = { runs, project, left, right: rates, bandwidths };
    const found = (["prompt", "decode"] as const).flatMap((measure) => figureOf(what, { measure, ...parts }));
    figures.push(...found);
    print(right.size > 1 ? `${what}, ${project}` : what, found);
  }
  return left;
}

interface Rounds {
  readonly measure: keyof Rates;
  readonly runs: Runs;
  readonly project: Project;
  readonly left: readonly Rates[];
  readonly right: readonly Rates[];
  /** After each of our runs. */
  readonly bandwidths: readonly number[];
}

/** Empty if a program does not report it. */
function figureOf(what: string, { measure, runs, project, left, right, bandwidths }: Rounds): Figure[] {
  const of = (rates: readonly Rates[]): number[] => rates.map((each) => each[measure]);
  const [ours, rounds] = [of(left), of(right)];
  if (![...ours, ...rounds].every(Number.isFinite)) return [];
  const shares = measure === "decode" ? bandwidths.map((bandwidth, i) => (ours[i]! * runs.bytes!) / bandwidth) : [];
  const share = shares.length > 0 ? median(shares) : undefined;
  const least = runs.goals?.[project]?.[measure];
  const goal: Goal | undefined = least === undefined ? undefined : { of: "ratio", atLeast: least };
  const peer = { name: project === "llama.cpp" ? runs.peer : `${project}'s ${runs.peer}`, rounds };
  const usual = { what, measure, unit: "tokens/s", ours, peer };
  return [{ ...usual, ...(share ? { bandwidthShare: share } : {}), ...(goal ? { goal } : {}) }];
}

/** Counts only the experts that a token uses. */
function bytesPerToken(file: string): number {
  const gguf = openGguf(file);
  const count = (name: string): number => Number(gguf.metadata.get(`qwen3moe.${name}`) ?? 1);
  const share = count("expert_used_count") / count("expert_count");
  let bytes = 0;
  for (const { name, byteLength } of gguf.tensors.values()) bytes += byteLength * (name.includes("_exps") ? share : 1);
  gguf.close();
  return bytes;
}

function print(what: string, found: readonly Figure[]): void {
  const cells = found.map(({ measure, ours: left, peer, bandwidthShare }) => {
    const [x, y] = [median(left), median(peer!.rounds)];
    const share = bandwidthShare ? `, ${Math.round(100 * bandwidthShare)} %` : "";
    return `${measure} ${x.toFixed(1)} / ${y.toFixed(1)} = ${(x / y).toFixed(2)}${share}`.padEnd(36);
  });
  console.log(`${what.padEnd(projects.size > 1 ? 42 : 28)} ${cells.join(" ")} load ${loadavg()[0]!.toFixed(1)}`);
}
