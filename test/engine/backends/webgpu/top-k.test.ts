/** Candidates chosen by a device, against a sort of the same logits. Their use: test/engine/text/sampling. */
import { beforeAll, expect, test } from "bun:test";
import type { TopKRows, Program, Session } from "../../../../src/engine/program/backend.ts";
import { searchStages } from "../../../../kernels/wgsl/candidates.ts";
import { makeRng, type Rng } from "../../../../src/engine/text/rng.ts";
import { quants } from "../../../../src/engine/formats/quant/index.ts";
import type { TopK, TopKRequest } from "../../../../src/engine/text/sampling/top-k.ts";
import { gaussian } from "../../../conformance/weights.ts";
import { topKOf } from "../../text/sampling/top-k.ts";
import type { BackendChild } from "../child.ts";
import { sharedWebGpu } from "./shared.ts";

let gpu: BackendChild;
beforeAll(async () => void (gpu = await sharedWebGpu()));

/** Kinds of logits: all different, few values, all equal, both zeros, rising, the largest and smallest floats. */
const KINDS: readonly ((rng: Rng, id: number) => number)[] = [
  (rng) => 4 * gaussian(rng),
  (rng) => rng.uint32() % 3,
  () => -7.5,
  (rng) => [0, -0, -1][rng.uint32() % 3]!,
  (_, id) => id / 16 - 100,
  (rng) => [3.4028234663852886e38, -3.4028234663852886e38, 1e-30, -1e-30, 0][rng.uint32() % 5]!,
];

/** A model whose logits after token t are row t of a table. */
function tableProgram(rows: readonly Float32Array[]): Program {
  const vocabSize = rows[0]!.length;
  const data = new Float32Array(rows.flatMap((row) => [...row]));
  const [x, y] = [
    { name: "x", dim: vocabSize },
    { name: "y", dim: vocabSize },
  ];
  const shape = { inDim: vocabSize, outDim: rows.length, rowStart: 0, tensorRows: rows.length, experts: 1 };
  return {
    shape: { arch: "table", dim: vocabSize, nLayers: 0, vocabSize },
    steps: [
      { op: "embed", out: x, table: { name: "table", quant: quants.f32, ...shape }, scale: 1 },
      { op: "takeRows", out: y, x },
    ],
    logits: y,
    states: y,
    weights: { path: "table.gguf", read: () => new Uint8Array(data.buffer) },
  };
}

const load = (program: Program): Promise<Session> =>
  gpu.backend.load(program, { ctxLen: 16, slots: 8, precise: true, threads: 1, cacheDir: undefined });

const rowOf = (token: number, request?: TopKRequest): TopKRows => ({
  slot: token,
  start: 0,
  tokens: Int32Array.of(token),
  logits: "last",
  request,
});

/** Tokens by id, with −0 as 0. */
const plain = ({ ids, logits }: TopK): number[][] =>
  [...ids].map((id, i) => [id, logits[i]! + 0]).toSorted((a, b) => a[0]! - b[0]!);

/** Distinct ids, not in order. */
function someIds(vocabSize: number, count: number, rng: Rng): Int32Array {
  const ids = new Set<number>();
  while (ids.size < Math.min(count, vocabSize)) ids.add(rng.uint32() % vocabSize);
  return Int32Array.from(ids);
}

test.each([1, 2, 37, 1023, 1024, 1025, 4097, 20_011])(
  "vocabulary of %d: the best and the masked tokens are those of a sort, also for equal logits and both zeros",
  async (vocabSize) => {
    const rng = makeRng(vocabSize);
    const rows = KINDS.map((kind) => Float32Array.from({ length: vocabSize }, (_, id) => kind(rng, id)));
    const session = await load(tableProgram(rows));
    const given = await session.run(rows.map((_, token) => rowOf(token)));
    const logitsOf = (token: number): Float32Array => given.subarray(token * vocabSize, (token + 1) * vocabSize);
    for (const [k, masked] of [
      [1, 0],
      [1, 3],
      [40, 0],
      [64, 64],
      [65, 1],
      [128, 256],
    ] as const) {
      const request = { k: Math.min(k, vocabSize), masked: someIds(vocabSize, masked, rng) };
      const tokens = k === 64 ? [5, 0] : [...rows.keys()]; // by the pass for few rows, and for many
      const { topK, logits } = await session.topK!.run(tokens.map((token) => rowOf(token, request)));
      expect(logits.length).toBe(0);
      expect(topK.map(plain)).toEqual(tokens.map((token) => plain(topKOf(logitsOf(token), request))));
    }
    session.close();
  },
  120_000,
);

test("rows that request candidates and rows that give all logits run together, in any order", async () => {
  const rng = makeRng(5);
  const rows = Array.from({ length: 6 }, () => Float32Array.from({ length: 1500 }, () => gaussian(rng)));
  const session = await load(tableProgram(rows));
  const requests = [undefined, 1, 40, undefined, undefined, 128].map((k, i) =>
    k === undefined ? undefined : { k, masked: someIds(1500, 10 * i, rng) },
  );
  for (const order of [
    [0, 1, 2, 3, 4, 5],
    [5, 4, 1],
    [2, 1],
    [1, 0, 2],
    [3, 0],
  ]) {
    const { topK, logits } = await session.topK!.run(order.map((token) => rowOf(token, requests[token])));
    const whole = order.filter((token) => !requests[token]);
    expect([...logits]).toEqual(whole.flatMap((token) => [...rows[token]!]));
    const asked = order.filter((token) => requests[token]);
    expect(topK.map(plain)).toEqual(asked.map((token) => plain(topKOf(rows[token]!, requests[token]!))));
  }
  session.close();
}, 120_000);

test("a prompt gives the candidates of its last row", async () => {
  const rng = makeRng(6);
  const rows = Array.from({ length: 6 }, () => Float32Array.from({ length: 300 }, () => gaussian(rng)));
  const session = await load(tableProgram(rows));
  const request = { k: 3, masked: Int32Array.of(7) };
  const prompt = { ...rowOf(0, request), tokens: Int32Array.of(0, 1, 2, 3, 4, 5, 2) };
  const none = { ...rowOf(1), logits: "none" } as const;
  const { topK } = await session.topK!.run([none, prompt]);
  expect(topK.map(plain)).toEqual([plain(topKOf(rows[2]!, request))]);
  session.close();
}, 120_000);

test.each([NaN, Infinity, -Infinity])(
  "a logit that is %d is an error that names the step, masked or not",
  async (bad) => {
    const rows = [0, 1].map(() => Float32Array.from({ length: 2000 }, (_, id) => -id));
    rows[1]![1900] = bad;
    const session = await load(tableProgram(rows));
    const error =
      /table.gguf: step 0 \(embed with 'table'\): expected numbers, got (NaN|-?Infinity) at row 0, value 1900$/;
    for (const masked of [[], [1900], [3]]) {
      const request = { k: 1, masked: Int32Array.from(masked) };
      await expect(session.topK!.run([rowOf(1, request)])).rejects.toThrow(error);
      const { topK } = await session.topK!.run([rowOf(0, request)]);
      expect(topK.map(plain)).toEqual([plain(topKOf(rows[0]!, request))]);
    }
    session.close();
  },
  120_000,
);

test("a vocabulary of 200,000 is searched in two dispatches for one token, in three for 64", () => {
  const groups = (keep: number): number[] => searchStages(200_000, keep).map((stage) => stage.groups);
  expect(groups(1)).toEqual([196, 1]);
  expect(groups(64)).toEqual([196, 13, 1]);
  expect(groups(128)).toEqual([196, 25, 4, 1]);
});
