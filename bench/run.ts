/**
 * Hearth against llama.cpp on the same files and cores: prefill, decode, load times and memory, alternated A B A B,
 * each run in its own process, medians with their spread. Beside them, the share of the machine's memory bandwidth that
 * decode reaches.
 *
 *   bun bench/run.ts [q4_0 q8_0 q4_k_m f16 …] [--rounds 3] [--threads N] [--out FOLDER] [--json FILE]
 */
import { mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { physicalCores } from "../src/backend/onnx/threads.ts";
import { ensureModel, MIXES, type Mix } from "./make-model.ts";
import type { Measurement, SideName } from "./sides.ts";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: "string", default: "3" },
    threads: { type: "string", default: String(physicalCores()) },
    out: { type: "string", default: join(import.meta.dir, "out") },
    json: { type: "string" },
  },
});

const mixes = positionals.length > 0 ? positionals : ["q4_0", "q8_0", "q4_k_m"];
for (const mix of mixes) {
  if (!Object.hasOwn(MIXES, mix)) throw new Error(`'${mix}': expected one of ${Object.keys(MIXES).join(", ")}`);
}

const bandwidth = readBandwidth();
const cpu = cpus()[0]?.model ?? "unknown CPU";
console.log(`${cpu}, ${flags.threads} threads, one thread reads ${(bandwidth / 1e9).toFixed(1)} GB/s`);
const results: Record<string, unknown> = {};
for (const mix of mixes) results[mix] = await compare(mix as Mix); // looked up above
if (flags.json)
  writeFileSync(flags.json, JSON.stringify({ bandwidth, threads: Number(flags.threads), results }, null, 2));

async function compare(mix: Mix): Promise<unknown> {
  const file = await ensureModel(mix, flags.out);
  const fileBytes = statSync(file).size;
  const cacheDir = join(flags.out, "cache");
  rmSync(cacheDir, { recursive: true, force: true });
  mkdirSync(cacheDir, { recursive: true });
  const first = await measure("hearth", file, cacheDir);
  const rounds: Record<SideName, Measurement[]> = { hearth: [], llama: [] };
  for (let round = 0; round < Number(flags.rounds); round++) {
    for (const side of ["hearth", "llama"] as const) rounds[side].push(await measure(side, file, cacheDir));
  }
  rmSync(cacheDir, { recursive: true, force: true });
  console.log(`\n${mix}: ${(fileBytes / 1e6).toFixed(0)} MB, ${flags.rounds} rounds, median (lowest to highest)`);
  console.table(rowsOf(rounds, { fileBytes, first }));
  return { fileBytes, first, ...rounds };
}

/** Runs one side in a process of its own. */
async function measure(side: SideName, file: string, cacheDir: string): Promise<Measurement> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "sides.ts"), side, file, cacheDir, flags.threads], {
    env: { ...process.env, ORT_DISABLE_TELEMETRY: "1", MALLOC_MMAP_THRESHOLD_: "65536" }, // as for runners
    stdout: "pipe",
    stderr: "inherit",
  });
  const output = await new Response(child.stdout).text();
  const line = output.trim().split("\n").at(-1) ?? "";
  if ((await child.exited) !== 0 || !line.startsWith("{"))
    throw new Error(`${side} on ${file} failed: ${output.slice(-500)}`);
  return JSON.parse(line) as Measurement; // what sides.ts prints
}

type Row = { hearth: string; "llama.cpp": string; ratio: string };

function rowsOf(
  rounds: Readonly<Record<SideName, readonly Measurement[]>>,
  { fileBytes, first }: { fileBytes: number; first: Measurement },
): Record<string, Row> {
  const row = (field: keyof Measurement, unit: string, scale = 1): Row => {
    const ours = rounds.hearth.map((each) => each[field] * scale);
    const theirs = rounds.llama.map((each) => each[field] * scale);
    return {
      hearth: `${summary(ours)} ${unit}`,
      "llama.cpp": `${summary(theirs)} ${unit}`,
      ratio: (median(ours) / median(theirs)).toFixed(2),
    };
  };
  const decode = median(rounds.hearth.map((each) => each.decode));
  const four = median(rounds.hearth.map((each) => each.decodeFour));
  const steady = (side: SideName): string =>
    (median(rounds[side].map((each) => each.steadyBytes)) / fileBytes).toFixed(2);
  return {
    "prefill 512": row("prefill", "tok/s"),
    "decode 64": row("decode", "tok/s"),
    "decode, four at once": {
      hearth: `${four.toFixed(1)} tok/s`,
      "llama.cpp": "",
      ratio: `${(four / decode).toFixed(2)} of one`,
    },
    "file read per second": {
      hearth: `${((decode * fileBytes) / 1e9).toFixed(1)} GB/s`,
      "llama.cpp": `${((median(rounds.llama.map((each) => each.decode)) * fileBytes) / 1e9).toFixed(1)} GB/s`,
      ratio: "",
    },
    "first load": { hearth: `${(first.loadMs / 1000).toFixed(1)} s`, "llama.cpp": "", ratio: "" },
    "later load": row("loadMs", "s", 1e-3),
    "peak RSS": row("peakBytes", "MB", 1e-6),
    "steady RSS": row("steadyBytes", "MB", 1e-6),
    "steady RSS / file": { hearth: steady("hearth"), "llama.cpp": steady("llama"), ratio: "" },
  };
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

function summary(values: readonly number[]): string {
  const text = (value: number): string => value.toFixed(median(values) < 100 ? 1 : 0);
  return `${text(median(values))} (${text(Math.min(...values))}–${text(Math.max(...values))})`;
}

/** Bytes per second of one thread reading memory far beyond the caches; the best of five. */
function readBandwidth(): number {
  const memory = Buffer.alloc(256 * 2 ** 20, 1);
  let best = 0;
  for (let i = 0; i < 5; i++) {
    const startedNs = Bun.nanoseconds();
    memory.indexOf(0); // memchr: vector loads over all of it
    best = Math.max(best, memory.length / ((Bun.nanoseconds() - startedNs) / 1e9));
  }
  return best;
}
