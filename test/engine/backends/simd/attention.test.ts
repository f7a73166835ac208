/** Attention of prompts, which multiplies 16-bit integers: possible overflows of sums, and the precision of shares. */
import { describe, expect, test } from "bun:test";
import { cpuBackend } from "../../../../src/engine/backends/cpu.ts";
import type { Backend, Rows } from "../../../../src/engine/program/backend.ts";
import type { Step } from "../../../../src/engine/program/step.ts";
import { runCase } from "../../../conformance/cases.ts";
import { makeCase, type Case } from "../../../conformance/draft.ts";
import { testRng } from "../../../seed.ts";
import { nmse } from "../compare.ts";
import { simdLevels, twoLevels } from "./levels.ts";

/** Exponentials are off by at most 1.1e-4, a share by a quarter of that if two are equal, and float32 rounds. */
const SHARE_MAX = 0.25 * 1.1e-4 + 1e-6;
/** Shares in products are multiples of 1/4,096 of the largest. */
const STEP = 1 / 4096;

/**
 * Squared rounding errors of 4 bits per square of a normal value: 0.0073 plus six standard deviations. A step that the
 * largest of 32 values decides alone leaves 0.0082.
 */
const FOUR_NMSE_MAX = 0.0078;
/** The least squares would shorten values by 0.0073. */
const FOUR_SHORTER_MAX = 0.004;

type Attention = Extract<Step, { op: "attention" }>;
const oneHead = { layer: 0, nHeads: 1, nKvHeads: 1, window: 0, softCap: 0, rope: undefined } as const;

/** One prompt of rows of `dim` given values, in one head of `headDim`; queries, keys and values are parts of a row. */
function given(rows: readonly (readonly number[])[], attention: Pick<Attention, "headDim" | "scale">): Case {
  const dim = rows[0]!.length;
  const { headDim } = attention;
  const tokens = new Int32Array(rows.length);
  const input = Float32Array.from(rows.flat());
  const batches = [[{ slot: 0, start: 0, tokens, input, logits: "all" as const }]];
  const made = makeCase(`attention: given rows of ${dim}`, { dim, ctxLen: rows.length, batches }, ({ x, steps }) => {
    const part = (name: string, index: number) => {
      const out = { name, dim: headDim };
      steps.push({ op: "slice", out, x, heads: 1, at: index * headDim });
      return out;
    };
    const [q, k, v] = dim === headDim ? [x, x, x] : ([part("q", 0), part("k", 1), part("v", 2)] as const);
    const out = { name: "attended", dim: headDim };
    steps.push({ op: "attention", out, q, k, v, ...oneHead, ...attention });
    return out;
  });
  const [embed, ...steps] = made.program.steps;
  if (embed?.op !== "embed") throw new Error("invariant: a case begins with an embedding");
  return { ...made, program: { ...made.program, steps: [{ op: "input", out: embed.out }, ...steps] } };
}

/** The run of row `start` alone. */
const oneRow = (start: number, row: readonly number[]): Rows => {
  return { slot: 0, start, tokens: new Int32Array(1), input: Float32Array.from(row), logits: "all" };
};

const resultOf = async (backend: Backend, each: Case): Promise<Float32Array> =>
  (await runCase(backend, each, { precise: false }))[0]!;

describe.each(twoLevels("attention on the CPU", simdLevels))("$level", ({ backend }) => {
  test("sums of heads of every length stay within 32 bits", async () => {
    for (const headDim of [1, 64, 127, 128, 130, 256, 576, 1024]) {
      const rows = Array.from({ length: 20 }, (_, row) => Array<number>(headDim).fill(row % 3 ? 2 : -2));
      const each = given(rows, { headDim, scale: 1 / headDim });
      const error = nmse(await resultOf(backend, each), await resultOf(cpuBackend, each));
      expect(error, `a head of ${headDim}`).toBeLessThan(1e-7);
    }
  });

  test.each(["f16", "q8_0", "q4_0"] as const)("%s: NaN reaches the rows that see it, and no others", async (kvType) => {
    const [headDim, count, broken] = [32, 300, 150];
    for (const part of [0, 1, 2]) {
      const rows = Array.from({ length: count }, (_, row) => {
        return Array.from({ length: 3 * headDim }, (_, i) => Math.sin(row * 3 * headDim + i));
      });
      rows[broken]![part * headDim + 5] = NaN;
      const each = given(rows, { headDim, scale: 0.2 });
      await expect(runCase(backend, each, { precise: false, kvType })).rejects.toThrow(
        `expected numbers, got NaN at row ${broken}, token 0`,
      );
      if (part === 0) continue; // a query is its own row's
      const last = each.batches.map((batch) => batch.map((run) => ({ ...run, logits: "last" as const })));
      await expect(runCase(backend, { ...each, batches: last }, { precise: false, kvType })).rejects.toThrow("got NaN");
    }
  });

  test("values in 4 bits lose 0.73 % of the squares of normal values, and keep their length", async () => {
    const [headDim, count] = [64, 200];
    const rng = testRng("values in 4 bits");
    const normal = (): number => Math.sqrt(-2 * Math.log(1 - rng.float())) * Math.cos(2 * Math.PI * rng.float());
    const vectors = Array.from({ length: count + 1 }, () => Array.from({ length: headDim }, normal));
    // the key of the row before has all of the shares
    const rows = Array.from({ length: count }, (_, i) => {
      return [...vectors[i]!, ...vectors[i + 1]!, ...Array.from({ length: headDim }, normal)];
    });
    const each = given(rows, { headDim, scale: 4 });
    const [all] = await runCase(backend, each, { precise: false, kvType: "q4_0" });
    const kept = all!.subarray(headDim);
    const values = Float32Array.from(rows.slice(0, -1).flatMap((row) => row.slice(2 * headDim)));
    expect(nmse(kept, values)).toBeLessThan(FOUR_NMSE_MAX);
    const along = (other: Float32Array): number => other.reduce((sum, x, i) => sum + x * values[i]!, 0);
    expect(Math.abs(along(kept) / along(values) - 1)).toBeLessThan(FOUR_SHORTER_MAX);
  });

  test("a row reads its own key and value before they are rounded to 4 bits", async () => {
    const [headDim, count] = [64, 40];
    const rng = testRng("own keys and values");
    const rows = Array.from({ length: count }, () => {
      const key = Array.from({ length: headDim }, () => rng.float() - 0.5);
      return [...key, ...key, ...Array.from({ length: headDim }, () => rng.float() - 0.5)];
    });
    const values = Float32Array.from(rows.flatMap((row) => row.slice(2 * headDim)));
    const prompts = given(rows, { headDim, scale: 16 }); // a row's own key has all of the shares
    const steps = { ...prompts, batches: rows.map((row, i) => [oneRow(i, row)]) };
    for (const each of [prompts, steps]) {
      const results = await runCase(backend, each, { precise: false, kvType: "q4_0" });
      expect(nmse(Float32Array.from(results.flatMap((part) => [...part])), values)).toBeLessThan(1e-9);
    }
  });

  test("shares are as exact as their exponentials, however far apart scores are", async () => {
    // Row 1 sees itself with a score of 0 beside row 0 with a score of key · 1, and has the only value: its share.
    const shareBeside = async (key: number): Promise<number> => {
      const rows = [
        [1, key, 0],
        [1, 0, 1],
      ];
      return (await resultOf(backend, given(rows, { headDim: 1, scale: 1 })))[1]!;
    };
    const whole = await shareBeside(-200); // only the rounding error of the value is left
    expect(Math.abs(whole - 1)).toBeLessThan(STEP);
    for (let key = -24; key <= 24; key += 1 / 16) {
      const got = (await shareBeside(key)) / whole;
      expect(Math.abs(got - 1 / (1 + Math.exp(key))), `a score of ${key}`).toBeLessThan(
        SHARE_MAX + (key > 0 ? STEP / 2 : 0),
      );
    }
  });
});
