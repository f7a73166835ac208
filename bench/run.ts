/**
 * Compares Hearth with llama.cpp as `node-llama-cpp` ships it, on the same files and cores: prompts, decode, load times
 * and memory, alternated A B A B, each run in a separate process, medians with their spread. `simd-peers.ts` compares
 * with llama.cpp's own programs, which have no JavaScript around each token.
 *
 *   bun bench/run.ts [q4_0 q8_0 q4_k_m f16 …] [--rounds 3] [--threads N] [--out FOLDER] [--record]
 */
import { statSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { physicalCores } from "../src/engine/backends/onnx/threads.ts";
import { ensureModel, MIXES, type Mix } from "./make-model.ts";
import { readBandwidth, writeRecord, type Figure } from "./report/record.ts";
import type { Measurement, SideName } from "./sides.ts";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: "string", default: "3" },
    threads: { type: "string", default: String(physicalCores()) },
    out: { type: "string", default: join(import.meta.dir, "out") },
    record: { type: "boolean", default: false },
  },
});

const mixes = positionals.length > 0 ? positionals : ["q4_0", "q8_0", "q4_k_m"];
for (const mix of mixes) {
  if (!Object.hasOwn(MIXES, mix)) throw new Error(`'${mix}': expected one of ${Object.keys(MIXES).join(", ")}`);
}

const bandwidth = await readBandwidth(Number(flags.threads));
const cpu = cpus()[0]?.model ?? "unknown CPU";
console.log(`${cpu}, ${flags.threads} threads, which read ${(bandwidth / 1e9).toFixed(1)} GB/s`);
const figures: Figure[] = [];
for (const mix of mixes) figures.push(...(await compare(mix as Mix))); // looked up above
if (flags.record) writeRecord("library", { title: "Beside node-llama-cpp's library", figures, bandwidth });

async function compare(mix: Mix): Promise<Figure[]> {
  const file = await ensureModel(mix, flags.out);
  const fileBytes = statSync(file).size;
  const rounds: Record<SideName, Measurement[]> = { hearth: [], llama: [] };
  for (let round = 0; round < Number(flags.rounds); round++) {
    for (const side of ["hearth", "llama"] as const) rounds[side].push(await measure(side, file));
  }
  console.log(`\n${mix}: ${(fileBytes / 1e6).toFixed(0)} MB, ${flags.rounds} rounds, median (lowest to highest)`);
  console.table(rowsOf(rounds, fileBytes));
  const figure = (field: keyof Measurement, measure: string, unit: string, scale = 1): Figure => {
    const of = (side: SideName): number[] => rounds[side].map((each) => each[field] * scale);
    const peer = { name: "node-llama-cpp", rounds: of("llama") };
    return { what: `1.2b ${mix}`, measure, unit, ours: of("hearth"), peer };
  };
  return [
    figure("prefill", "prompt", "tokens/s"),
    figure("decode", "decode", "tokens/s"),
    figure("loadMs", "load", "s", 1e-3),
    figure("steadyBytes", "memory, of the file", "times", 1 / fileBytes),
  ];
}

/** Runs one side in a separate process. */
async function measure(side: SideName, file: string): Promise<Measurement> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "sides.ts"), side, file, flags.threads], {
    env: { ...process.env, MALLOC_MMAP_THRESHOLD_: "65536" }, // the same as for runners
    stdout: "pipe",
    stderr: "inherit",
  });
  const output = await new Response(child.stdout).text();
  const line = output.trim().split("\n").at(-1) ?? "";
  if ((await child.exited) !== 0 || !line.startsWith("{"))
    throw new Error(`${side} on ${file} failed: ${output.slice(-500)}`);
  return JSON.parse(line) as Measurement; // sides.ts printed it
}

type Row = { hearth: string; "llama.cpp": string; ratio: string };

function rowsOf(rounds: Readonly<Record<SideName, readonly Measurement[]>>, fileBytes: number): Record<string, Row> {
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
    load: row("loadMs", "s", 1e-3),
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
