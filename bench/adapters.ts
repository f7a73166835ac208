/**
 * Decode steps of several streams with adapters that rows choose: no adapter, the same one, one each, and an adapter
 * for one stream only, alternated.
 *
 *   bun bench/adapters.ts FILE.gguf [--streams 8] [--rank 16] [--steps 20] [--rounds 5] [--threads 0]
 *
 * The adapters are random float16 changes of all matrices of attention and MLPs. The goal: with an adapter each, at
 * least 0.8 times the tokens per second of the same adapter for all. Other work on the machine slows one side or the
 * other, so the ratio of the processor time is shown too.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { loadProgram, offerAdapters } from "../src/engine/architectures/index.ts";
import { simdBackend } from "../src/engine/backends/host/simd.ts";
import { loadOptionsFor } from "../src/engine/backends/small.ts";
import { openGguf } from "../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../src/engine/formats/files/write.ts";
import type { Gguf } from "../src/engine/formats/gguf/gguf.ts";
import type { RowAdapter, Rows } from "../src/engine/program/backend.ts";
import { makeAdapter, quantizedTo, shapesOf } from "../test/engine/architectures/adapters.ts";
import { median } from "./streamed.ts";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    streams: { type: "string", default: "8" },
    rank: { type: "string", default: "16" },
    steps: { type: "string", default: "20" },
    rounds: { type: "string", default: "5" },
    threads: { type: "string", default: "0" },
  },
});
const [streams, rank, steps, rounds, threads] = [
  flags.streams,
  flags.rank,
  flags.steps,
  flags.rounds,
  flags.threads,
].map(Number) as [number, number, number, number, number];

const folder = mkdtempSync(join(tmpdir(), "hearth-adapters-"));
const gguf = openGguf(positionals[0] ?? "models/hearth/hearth.gguf");
const adapters: Gguf[] = [];
for (let seed = 1; seed <= streams; seed++) {
  const made = makeAdapter(shapesOf(gguf), { rank, alpha: rank / 100, seed, targets: /attn|ffn/ });
  const path = join(folder, `${seed}.gguf`);
  await writeGguf(path, { ...made, tensors: made.tensors.map((tensor) => quantizedTo("f16", tensor)) });
  adapters.push(openGguf(path));
}
const program = offerAdapters(loadProgram(gguf), gguf, adapters);
const options = { ctxLen: 32 + 3 * steps, slots: streams, precise: false, threads, cacheDir: undefined };
const session = await simdBackend.load(program, loadOptionsFor(program, options));

const SIDES: Readonly<Record<string, (slot: number) => readonly RowAdapter[]>> = {
  "no adapter": () => [],
  "one for all": () => [{ adapter: 0, scale: 1 }],
  "one each": (slot) => [{ adapter: slot, scale: 1 }],
  "one alone": (slot) => (slot === 0 ? [{ adapter: 0, scale: 1 }] : []),
};
const PROMPT = 16;
const rowsOf = (slot: number, start: number, count: number, own: readonly RowAdapter[]): Rows => {
  const tokens = Int32Array.from({ length: count }, (_, i) => 100 + slot + start + i);
  return { slot, start, tokens, adapters: own, logits: "last" };
};

const taken = Object.keys(SIDES).map(() => ({ wall: [] as number[], processor: [] as number[] }));
for (let round = -1; round < rounds; round++) {
  for (const [i, choose] of Object.values(SIDES).entries()) {
    for (let slot = 0; slot < streams; slot++) await session.run([rowsOf(slot, 0, PROMPT, choose(slot))]);
    const [startedMs, before] = [performance.now(), process.cpuUsage()];
    for (let step = 0; step < steps; step++) {
      await session.run(Array.from({ length: streams }, (_, slot) => rowsOf(slot, PROMPT + step, 1, choose(slot))));
    }
    if (round < 0) continue; // the first round copies the adapters
    taken[i]!.wall.push((performance.now() - startedMs) / steps);
    taken[i]!.processor.push(process.cpuUsage(before).user / 1000 / steps);
  }
}
console.log(`${streams} streams, rank ${rank}, ${session.device}, load ${loadavg()[0]!.toFixed(1)}; ms a step, median`);
for (const [i, name] of Object.keys(SIDES).entries()) {
  const { wall, processor } = taken[i]!;
  console.log(
    `  ${name.padEnd(12)} ${median(wall).toFixed(2).padStart(9)}   processor ${median(processor).toFixed(2)}`,
  );
}
const ratio = (kind: "wall" | "processor"): string =>
  median(taken[1]![kind].map((one, round) => one / taken[2]![kind][round]!)).toFixed(2);
console.log(`one each : one for all, tokens per second: ${ratio("wall")}, by processor time ${ratio("processor")}`);
session.close();
for (const file of [gguf, ...adapters]) file.close();
rmSync(folder, { recursive: true });
process.exit(0);
