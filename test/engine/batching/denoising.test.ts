/** Filling in masks, compared with llama.cpp's by its own random draws; and the ranks, by their formulas. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import { Denoising, rankBy, type Rank } from "../../../src/engine/batching/denoising.ts";
import { planPasses, type DiffusionPass } from "../../../src/engine/batching/diffusion-plan.ts";
import { simdBackend } from "../../../src/engine/backends/host/simd.ts";
import type { Session } from "../../../src/engine/program/backend.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../src/engine/formats/files/write.ts";
import { ANSWERED, diffusionNames, makeDiffusionModel, PROMPT } from "../architectures/diffusion-models.ts";
import { VOCAB } from "../architectures/models.ts";
import recorded from "./diffusion-ids.json";

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-denoising-"))));
afterAll(() => rm(folder, { recursive: true }));

/** The C++ library's `mt19937`, as a number of [0, 1) from two draws. */
function mersenne(seed: number): () => number {
  const state = new Uint32Array(624);
  state[0] = seed;
  for (let i = 1; i < 624; i++) {
    const x = state[i - 1]! ^ (state[i - 1]! >>> 30);
    state[i] = Math.imul(1_812_433_253, x) + i;
  }
  let at = 624;
  const next = (): number => {
    if (at === 624) {
      for (let i = 0; i < 624; i++) {
        const y = (state[i]! & 0x80000000) | (state[(i + 1) % 624]! & 0x7fffffff);
        state[i] = state[(i + 397) % 624]! ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0);
      }
      at = 0;
    }
    let y = state[at++]!;
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return (y ^ (y >>> 18)) >>> 0;
  };
  return () => (next() + next() * 2 ** 32) / 2 ** 64;
}

/** llama.cpp's draw from all tokens, in the order of ids or of probabilities. */
function drawn(logits: Float32Array, random: number, isSorted: boolean): number {
  const ids = [...logits.keys()];
  if (isSorted) ids.sort((a, b) => logits[b]! - logits[a]!);
  const most = Math.max(...logits);
  const weights = ids.map((id) => Math.fround(Math.exp(Math.fround(logits[id]! - most))));
  const target = random * weights.reduce((sum, weight) => sum + weight, 0);
  let run = 0;
  for (const [i, id] of ids.entries()) if ((run += weights[i]!) >= target) return id;
  return ids.at(-1)!;
}

const likeliest = (logits: Float32Array): number => logits.indexOf(Math.max(...logits));

async function fillIn(session: Session, denoising: Denoising): Promise<number[]> {
  while (!denoising.done) {
    const { tokens, masks } = denoising;
    const logits = await session.run([{ slot: 0, start: 0, tokens, logits: "all" }]);
    for (const position of masks) {
      const row = denoising.rowOf(position) * VOCAB;
      denoising.consider(position, logits.slice(row, row + VOCAB));
    }
    denoising.finishPass();
  }
  return [...denoising.tokens];
}

const length = ANSWERED - PROMPT.length;
/** llama.cpp divides prompt and answer into four blocks of 16, and gives each four of its passes. */
const inBlocks = [0, 16, 32, 48].flatMap((from): DiffusionPass[] => {
  const end = Math.min(from + 16, length);
  return planPasses({ length: end - from, steps: 4, block: 16 }).map(({ count }) => ({ from, end, count }));
});

for (const name of diffusionNames) {
  test(`${name} fills in llama.cpp's tokens`, async () => {
    const path = join(folder, `${name}.gguf`);
    await writeGguf(path, makeDiffusionModel(name));
    const gguf = openGguf(path);
    const program = loadProgram(gguf);
    const options = { ctxLen: ANSWERED, slots: 1, precise: true, threads: 1, cacheDir: undefined };
    const session = await simdBackend.load(program, options);
    const byOrder: Rank = () => 1; // llama.cpp ranks the only candidate of all positions alike
    const [draw, drawSorted] = [mersenne(7), mersenne(7)];
    const ways = [
      { passes: inBlocks, choose: likeliest, rank: byOrder },
      {
        passes: inBlocks,
        choose: (logits: Float32Array) => drawn(logits, draw(), false),
        rank: rankBy("confidence", () => 0),
      },
      {
        passes: planPasses({ length, steps: 16, block: 0 }),
        choose: (logits: Float32Array) => drawn(logits, drawSorted(), true),
        rank: rankBy("margin", () => 0),
      },
    ];
    const expected: readonly (readonly number[])[] = recorded[name as keyof typeof recorded];
    for (const [i, way] of ways.entries()) {
      const denoising = new Denoising({ prompt: PROMPT, length, traits: program.diffusion!, ...way });
      expect(await fillIn(session, denoising)).toEqual([...expected[i]!]);
    }
    session.close();
    gguf.close();
  });
}

test("ranks are the probability, the distance to the second, the certainty, or random", () => {
  const logits = Float32Array.from([0.5, 2, -1, 1.5]);
  const weights = [...logits].map(Math.exp);
  const p = weights.map((weight) => weight / weights.reduce((a, b) => a + b));
  const rank = (algorithm: Parameters<typeof rankBy>[0], id: number) => rankBy(algorithm, () => 0.25)(logits, id);
  expect(rank("confidence", 0)).toBeCloseTo(p[0]!, 12);
  expect(rank("margin", 0)).toBeCloseTo(p[1]! - p[3]!, 12);
  expect(rank("entropy", 0)).toBeCloseTo(
    p.reduce((sum, each) => sum + each * Math.log(each), 0),
    12,
  );
  expect(rank("random", 0)).toBe(0.25);
});

test("a plan fills in each position once, for any length, number of steps and block", () => {
  for (const length of [0, 1, 2, 31, 33, 100])
    for (const steps of [0, 1, 7, 100, 1000])
      for (const block of [0, 1, 8, 32, 999]) {
        const passes = planPasses({ length, steps, block });
        const filled = passes.reduce((sum, { count }) => sum + count, 0);
        expect([length, steps, block, filled]).toEqual([length, steps, block, length]);
        for (const { from, end, count } of passes) expect(count > 0 && count <= end - from && end <= length).toBe(true);
      }
});
