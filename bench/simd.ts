/**
 * Speed of the SIMD kernels with a file on this machine: time to load, to the first token, prompt and decode rates.
 *
 *   bun bench/simd.ts FILE [--level vnni] [--prompt 512] [--tokens 24] [--streams 1] [--threads 0] [--depth 0]
 *     [--rounds 3] [--kv q8_0] [--mapped] [--json]
 *
 * --depth: tokens of context before the measurement. --mapped: the file stays in the system's pages; otherwise it is
 * first moved into pages of 2 MB, as for a loaded model. Rates are medians of the rounds. Streams continue the same
 * context, and each draws its own tokens, as in llama.cpp's `llama-batched-bench`: with one token for all, as in
 * ik_llama.cpp's, they would choose the same experts. `bench/simd-peers.ts` compares both with it.
 */
import { parseArgs } from "node:util";
import { loadProgram } from "../src/engine/architectures/index.ts";
import { makeSimdBackend } from "../src/engine/backends/host/simd.ts";
import { mapFile } from "../src/engine/formats/files/map.ts";
import { openGgufFrom } from "../src/engine/formats/gguf/read.ts";
import type { LoadOptions } from "../src/engine/program/backend.ts";
import { makeRng } from "../src/engine/text/rng.ts";

const CHUNK = 512;
const SEED = 1;

const { values, positionals } = parseArgs({
  args: process.argv.slice(2),
  allowPositionals: true,
  options: {
    level: { type: "string" },
    kv: { type: "string", default: "f16" },
    prompt: { type: "string", default: "512" },
    tokens: { type: "string", default: "24" },
    streams: { type: "string", default: "1" },
    threads: { type: "string", default: "0" },
    depth: { type: "string", default: "0" },
    rounds: { type: "string", default: "3" },
    mapped: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const [path] = positionals;
if (!path) throw new Error("usage: bun bench/simd.ts FILE [--level LEVEL] [--prompt N] [--tokens N] [--streams N]");
const [prompt, tokens, streams] = [Number(values.prompt), Number(values.tokens), Number(values.streams)];
const depth = Number(values.depth);

const begin = performance.now();
const source = mapFile(path);
const program = loadProgram(openGgufFrom(() => source, path));
const options = { ctxLen: depth + prompt + tokens + 8, slots: streams, precise: false, cacheDir: undefined };
const kvType = values.kv as NonNullable<LoadOptions["kvType"]>; // the backend refuses others
const session = await makeSimdBackend({ level: values.level }).load(program, {
  ...options,
  kvType,
  threads: Number(values.threads),
});
const loadMs = performance.now() - begin;
const text = Int32Array.from({ length: Math.max(1, prompt) }, (_, i) => 300 + ((i * 7919) % 700));
await session.run([{ slot: 0, start: 0, tokens: text.subarray(0, 1), logits: "last" }]);
const firstMs = performance.now() - begin;
const moved = values.mapped ? 0 : await source.moveToHugePages?.();
const movedMs = performance.now() - begin - firstMs;

/** Per second, the median of several rounds. */
async function rateOf(count: number, work: () => Promise<void>): Promise<number> {
  const rates: number[] = [];
  for (let round = 0; round < Number(values.rounds); round++) {
    const start = performance.now();
    await work();
    rates.push((count / (performance.now() - start)) * 1000);
  }
  return rates.toSorted((a, b) => a - b)[rates.length >> 1] ?? Number.NaN;
}

for (let at = 0; at < depth; at += CHUNK) {
  const some = Int32Array.from({ length: Math.min(CHUNK, depth - at) }, (_, i) => 300 + (((at + i) * 7919) % 700));
  await session.run([{ slot: 0, start: at, tokens: some, logits: "none" }]);
}
const promptRate = await rateOf(prompt, async () => {
  for (let at = 0; at < prompt; at += CHUNK) {
    await session.run([{ slot: 0, start: depth + at, tokens: text.subarray(at, at + CHUNK), logits: "last" }]);
  }
});
const context = depth || prompt;
for (let slot = 1; slot < streams; slot++) await session.copy({ from: 0, to: slot, length: context });
const rng = makeRng(SEED);
const decodeRate = await rateOf(tokens * streams, async () => {
  for (let i = 0; i < tokens; i++) {
    await session.run(
      Array.from({ length: streams }, (_, slot) => ({
        slot,
        start: context + i,
        tokens: Int32Array.of(rng.uint32() % program.shape.vocabSize),
        logits: "last" as const,
      })),
    );
  }
});
const resident = Math.round(process.memoryUsage().rss / 1e6);
const figures = { device: session.device, loadMs, firstMs, promptRate, decodeRate, resident, moved, movedMs };
if (values.json) console.log(JSON.stringify(figures));
else
  console.log(
    `${session.device}: load ${loadMs.toFixed(0)} ms, first token ${firstMs.toFixed(0)} ms, ` +
      `prompt ${promptRate.toFixed(0)} tok/s, decode ${decodeRate.toFixed(1)} tok/s with ${streams} streams, ` +
      `resident ${resident} MB`,
  );
process.exit(0);
