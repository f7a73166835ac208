/** Attention on a software adapter: the bits of a row, and its dispatches. conformance.test.ts has the numbers. */
import { beforeAll, expect, test } from "bun:test";
import { splitsOf } from "../../../../kernels/wgsl/splits.ts";
import type { Rows, Session } from "../../../../src/engine/program/backend.ts";
import { replay, type Counts, type Recorded } from "../../../../src/engine/backends/webgpu/record.ts";
import { conformanceCases } from "../../../conformance/cases.ts";
import { attention, linear, makeCase } from "../../../conformance/draft.ts";
import { drawn } from "../../../seed.ts";
import type { BackendChild } from "../child.ts";
import { expectClose } from "../compare.ts";
import { sharedWebGpu } from "./shared.ts";

let gpu: BackendChild;
beforeAll(async () => void (gpu = await sharedWebGpu()));

const cases = conformanceCases();
/** Tokens of a slot: different for each. */
const tokens = (slot: number, start: number, count: number): Int32Array =>
  Int32Array.from({ length: count }, (_, i) => (5 * slot + 7 * (start + i) + 1) % 37);
const rows = (slot: number, start: number, count: number, logits: Rows["logits"] = "all"): Rows => ({
  slot,
  start,
  tokens: tokens(slot, start, count),
  logits,
});

async function withSession<T>(name: string, use: (session: Session) => Promise<T>): Promise<T> {
  const { program, options } = cases.find((each) => each.name === name)!;
  const session = await gpu.backend.load(program, { ...options, precise: true, threads: 1, cacheDir: undefined });
  const result = await use(session);
  session.close();
  return result;
}

const names = [
  "4 heads on 1 of 64",
  "a window of 270 and capped scores",
  "a window of 65",
  "heads that rotate",
  "heads that rotate, each normed, in a window of 65",
];

for (const name of drawn("attention on the GPU", names, 2).map((each) => `attention: a long context, ${each}`)) {
  test(`${name}: a decoded row has the same bits alone and beside others, split or whole`, async () => {
    const [alone, beside] = await withSession(name, async (session) => {
      await session.run([rows(0, 0, 290, "none"), rows(1, 0, 60, "none"), rows(2, 0, 270, "none")]);
      const single: number[] = [];
      for (const row of [rows(0, 290, 1), rows(1, 60, 1), rows(2, 270, 2)]) single.push(...(await session.run([row])));
      return [single, [...(await session.run([rows(0, 290, 1), rows(1, 60, 1), rows(2, 270, 2)]))]];
    });
    expect(alone!.some((value) => value !== 0)).toBe(true);
    expect(beside!).toEqual(alone!);
  }, 120_000);

  test(`${name}: a prompt has the same bits in one run, in chunks and beside others`, async () => {
    const [whole, parts] = await withSession(name, async (session) => {
      const first = [...(await session.run([rows(0, 0, 140)]))];
      const second: number[] = [];
      let at = 0;
      for (const count of [17, 70, 5, 48]) {
        const beside = Math.max(9 + count, 33 - count); // more rows than a run of few takes
        const got = await session.run([rows(2, at, beside, "none"), rows(0, at, count), rows(1, at, 7, "none")]);
        second.push(...got);
        at += count;
      }
      return [first, second];
    });
    expect(whole!.some((value) => value !== 0)).toBe(true);
    expect(parts!).toEqual(whole!);
  }, 120_000);
}

test("a sequence that continues in the next chunk sees its keys of the chunk before", async () => {
  const name = "attention: a long context, heads that rotate";
  const { options } = cases.find((each) => each.name === name)!;
  const six = (slot: number): Rows => ({ ...rows(slot, 0, 6), tokens: tokens(1, 0, 6) });
  const [parted, whole] = await withSession(name, async (session) => {
    const full = rows(0, 0, options.ctxLen - 3, "none"); // leaves room for three more in the chunk
    const beside = (await session.run([full, six(1)])).slice();
    return [beside, (await session.run([six(2)])).slice()];
  });
  expectClose(parted!, whole!, { abs: 2e-5, rel: 2e-4 });
}, 60_000);

test("an error for NaN after split attention names the step that made it, not the attention", async () => {
  const { program, options } = makeCase("attention before NaN", { dim: 32, ctxLen: 300 }, (draft) => {
    let out = attention(draft, { nHeads: 4, nKvHeads: 1, headDim: 16 }); // wider than the results before it
    // enough products that one reuses the memory of the attention result
    for (let i = 0; i < 8; i++) {
      const w = draft.matrix({ inDim: out.dim, outDim: out.dim });
      out = linear({ ...draft, x: out }, w, undefined, `y${i}`);
    }
    return out;
  });
  const broken = program.weights.read("w4.weight").slice().fill(0xff);
  const read = (name: string): Uint8Array => (name === "w4.weight" ? broken : program.weights.read(name));
  const parts = { ...program, weights: { ...program.weights, read } };
  const session = await gpu.backend.load(parts, { ...options, precise: true, threads: 1, cacheDir: undefined });
  await session.run([rows(0, 0, 280, "none")]);
  for (let i = 0; i < 2; i++)
    await expect(session.run([rows(0, 280, 1)])).rejects.toThrow(
      "(linear with 'w4.weight'): expected numbers, got NaN",
    );
  session.close();
}, 120_000);

test.each([
  { name: "compress: blocks of 4 that overlap", broken: "w3.weight", what: "the bias of gates" },
  { name: "attention: a long context, 4 heads on 1 of 64", broken: "w2.weight", what: "keys" },
])(
  "$name: a NaN in $what is an error",
  async ({ name, broken }) => {
    const { program, options } = cases.find((each) => each.name === name)!;
    const values = program.weights.read(broken).slice().fill(0xff);
    const read = (tensor: string): Uint8Array => (tensor === broken ? values : program.weights.read(tensor));
    const parts = { ...program, weights: { ...program.weights, read } };
    const load = { ...options, precise: true, threads: 1, cacheDir: undefined };
    for (const count of [4, 36]) {
      const session = await gpu.backend.load(parts, load);
      await expect(session.run([rows(0, 0, count)])).rejects.toThrow("expected numbers, got NaN");
      session.close();
    }
  },
  120_000,
);

test("the number of splits never falls as a context grows, and is one for a short context", () => {
  expect(splitsOf(1)).toBe(1);
  expect(splitsOf(256)).toBe(1);
  expect(splitsOf(257)).toBe(5);
  for (let seen = 1; seen < 10_000; seen++) expect(splitsOf(seen + 1)).toBeGreaterThanOrEqual(splitsOf(seen));
  expect(splitsOf(1_000_000)).toBe(64);
});

test("a run dispatches the splits that its longest row needs, and no join if no row is split", () => {
  const calls: number[][] = [];
  const encoder = {
    setPipeline: () => {},
    setBindGroup: () => {},
    dispatchWorkgroups: (x: number, y = 1, z = 1) => void calls.push([x, y, z]),
  } as unknown as GPUComputePassEncoder; // the part that a replay uses
  const base = { x: 4, rows: "all", times: 1, rowsEach: 1 } as const;
  const [split, join] = [
    { ...base, splits: 7, z: 7 },
    { ...base, joins: true, z: 1 },
  ] as unknown as Recorded[];
  const run = (counts: Counts): boolean[] => [split!, join!].map((each) => replay(encoder, each, counts));
  expect(run({ all: 2, wanted: 0, given: 0, sequences: 1, splits: 1, memorySplits: 1, forgotten: 0 })).toEqual([
    true,
    false,
  ]);
  expect(run({ all: 2, wanted: 0, given: 0, sequences: 1, splits: 5, memorySplits: 1, forgotten: 0 })).toEqual([
    true,
    true,
  ]);
  expect(run({ all: 1, wanted: 0, given: 0, sequences: 1, splits: 64, memorySplits: 1, forgotten: 0 })).toEqual([
    true,
    true,
  ]);
  expect(calls).toEqual([
    [4, 2, 1],
    [4, 2, 5],
    [4, 2, 1],
    [4, 1, 7],
    [4, 1, 1],
  ]);
});
