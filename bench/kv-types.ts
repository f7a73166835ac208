/**
 * Decode steps after a long context with each format of the KV cache, alternated.
 *
 *   bun bench/kv-types.ts FILE.gguf [--depth 16384] [--steps 6] [--rounds 5] [--threads 0] [--level LEVEL]
 *     [--types f16,q8_0,q4_0]
 *
 * The context is one block of 64 positions, written again and again: what it says does not matter for speed. Weights
 * are moved into pages of 2 MB first, as while a model is used. The goals: q4_0 at least 1.3 times the tokens per
 * second of f16 after 16,384 positions, and weights and cache at 0.7 of the memory bandwidth after 4,096, 0.6 after
 * 16,384. Processor time is shown too, because other work on the machine slows one side or the other.
 */
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { loadProgram } from "../src/engine/architectures/index.ts";
import { makeSimdBackend } from "../src/engine/backends/host/simd.ts";
import { loadOptionsFor } from "../src/engine/backends/small.ts";
import { mapFile } from "../src/engine/formats/files/map.ts";
import { openGgufFrom } from "../src/engine/formats/gguf/read.ts";
import type { LoadOptions } from "../src/engine/program/backend.ts";
import { physicalCores } from "../src/engine/backends/onnx/threads.ts";
import { readBandwidth } from "./report/record.ts";
import { median } from "./streamed.ts";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    depth: { type: "string", default: "16384" },
    steps: { type: "string", default: "6" },
    rounds: { type: "string", default: "5" },
    threads: { type: "string", default: "0" },
    level: { type: "string" },
    types: { type: "string", default: "f16,q8_0,q4_0" },
  },
});
const [depth, steps, rounds] = [Number(flags.depth), Number(flags.steps), Number(flags.rounds)];
const types = flags.types.split(",") as NonNullable<LoadOptions["kvType"]>[];

const path = positionals[0] ?? "models/hearth/hearth.gguf";
const bandwidth = await readBandwidth(Number(flags.threads) || physicalCores());
const source = mapFile(path);
const gguf = openGgufFrom(() => source, path);
const program = loadProgram(gguf);
let weights = 0;
for (const { byteLength } of gguf.tensors.values()) weights += byteLength;
const backend = makeSimdBackend({ level: flags.level });
const options = {
  ctxLen: depth + steps,
  slots: 1,
  precise: false,
  threads: Number(flags.threads),
  cacheDir: undefined,
};
const step = (start: number, count = 1) => {
  const tokens = Int32Array.from({ length: count }, (_, i) => 100 + ((start + i) % 700));
  return [{ slot: 0, start, tokens, logits: "last" as const }];
};

const sides = await Promise.all(
  types.map(async (kvType) => {
    const session = await backend.load(program, loadOptionsFor(program, { ...options, kvType }));
    const { blocks } = session;
    if (!blocks) throw new Error("the model has no cache of blocks");
    await session.run(step(0, blocks.length));
    const bytes = await blocks.read(0, 0, blocks.length);
    for (let first = blocks.length; first + blocks.length <= depth; first += blocks.length) {
      blocks.write(0, { first, count: blocks.length, bytes });
    }
    return { kvType, session, wall: [] as number[], processor: [] as number[] };
  }),
);
await source.moveToHugePages?.();
for (let round = 0; round < rounds; round++) {
  for (const { session, wall, processor } of sides) {
    const [startedMs, before] = [performance.now(), process.cpuUsage()];
    for (let i = 0; i < steps; i++) await session.run(step(depth + i));
    wall.push((performance.now() - startedMs) / steps);
    processor.push(process.cpuUsage(before).user / 1000 / steps);
  }
}
console.log(
  `behind ${depth} positions, ${sides[0]!.session.device}, load ${loadavg()[0]!.toFixed(1)}; ms a step, median; ` +
    `share of ${(bandwidth / 1e9).toFixed(1)} GB/s that weights and cache have`,
);
for (const { kvType, session, wall, processor } of sides) {
  const ratio = (mine: readonly number[], kind: "wall" | "processor"): string =>
    median(sides[0]![kind].map((ms, round) => ms / mine[round]!)).toFixed(2);
  console.log(
    `  ${kvType.padEnd(5)} ${median(wall).toFixed(1)}, processor ${median(processor).toFixed(1)}; ` +
      `tokens per second to ${types[0]}: ${ratio(wall, "wall")}, by processor time ${ratio(processor, "processor")}; ` +
      `cache ${(session.bytes.kv / 2 ** 20).toFixed(1)} MiB, ` +
      `share ${(((weights + session.bytes.kv) * 1000) / median(wall) / bandwidth).toFixed(2)}`,
  );
}
process.exit(0);
