/**
 * Milliseconds of a step by its number of rows, as streams (a row each of several sequences) and as a turn (rows of one
 * sequence), relative to one row. On a software adapter it is the processor's time, which other processes disturb less,
 * and only the ratios mean anything.
 *
 *   bun bench/gpu-rows.ts FILE.gguf [--rows 1,2,4,5,8,16,32,40,64] [--rounds 5] [--at 20]
 */
import { parseArgs } from "node:util";
import { dawn } from "../src/engine/backends/host/dawn.ts";
import { webGpuBackend } from "../src/engine/backends/host/webgpu.ts";
import { loadProgram } from "../src/engine/architectures/index.ts";
import { openGguf } from "../src/engine/formats/files/gguf.ts";
import { parseKernels } from "../src/base/kernel-tuning.ts";
import type { Rows } from "../src/engine/program/backend.ts";

const { values: flags, positionals } = parseArgs({
  options: {
    rows: { type: "string", default: "1,2,4,5,8,16,32,40,64" },
    rounds: { type: "string", default: "5" },
    at: { type: "string", default: "20" }, // the position of the first row
  },
  allowPositionals: true,
});
const [file] = positionals;
if (!file) throw new Error("usage: gpu-rows.ts FILE.gguf [--rows 1,8,…] [--rounds 5] [--at 20]");
const counts = flags.rows.split(",").map(Number);
const [rounds, at] = [Number(flags.rounds), Number(flags.at)];
const most = Math.max(...counts);

await dawn().open({ software: true });
const gpuKernels = parseKernels(process.env["HEARTH_GPU_KERNELS"] ?? "plain");
if (!gpuKernels) throw new Error("HEARTH_GPU_KERNELS: expected the name of kernels");
const options = { ctxLen: at + most, slots: most, precise: false, threads: 0, cacheDir: undefined, gpuKernels };
const loadedMs = performance.now();
const session = await webGpuBackend.load(loadProgram(openGguf(file)), options);
console.log(`${session.device}: loaded in ${Math.round(performance.now() - loadedMs)} ms`);

const isSoftware = session.vramBytes === 0;
const clock = (): number => {
  const { user, system } = process.cpuUsage();
  return isSoftware ? (user + system) / 1000 : performance.now();
};
const tokens = (count: number): Int32Array => Int32Array.from({ length: count }, (_, i) => 300 + ((i * 7919) % 700));
const KINDS: Readonly<Record<string, (count: number) => Rows[]>> = {
  streams: (count) =>
    Array.from({ length: count }, (_, slot) => ({ slot, start: at, tokens: tokens(1), logits: "last" as const })),
  turn: (count) => [{ slot: 0, start: at, tokens: tokens(count), logits: "last" }],
};
const table: Record<string, Record<string, string>> = {};
for (const [kind, batchOf] of Object.entries(KINDS)) {
  const times = new Map(counts.map((count) => [count, [] as number[]]));
  for (let round = 0; round <= rounds; round++) {
    for (const count of counts) {
      const startedMs = clock();
      await session.run(batchOf(count));
      if (round > 0) times.get(count)!.push(clock() - startedMs); // the first round warms up
    }
  }
  const best = (count: number): number => Math.min(...times.get(count)!);
  const one = best(counts[0]!);
  for (const count of counts)
    (table[count] ??= {})[kind] = `${best(count).toFixed(1)} ms, ${(best(count) / one).toFixed(2)} ×`;
}
console.table(table);
session.close();
process.exit(0);
