/** Special rows: vectors instead of ids, positions, and bidirectional spans. */
import { expect, test } from "bun:test";
import type { Program, Rows } from "../../../../src/engine/program/backend.ts";
import { cpuBackend } from "../../../../src/engine/backends/cpu.ts";
import { rotateHead, rotateHeadBySections, ropeTable } from "../../../../src/engine/program/rope.ts";
import type { Buf, Step } from "../../../../src/engine/program/step.ts";
import { attention, bidirectionalAttention, makeCase, plainRope } from "../../../conformance/draft.ts";

const DIM = 32;
const attended = makeCase("rows of their own", { dim: DIM }, (draft) =>
  attention(draft, { nHeads: 4, nKvHeads: 4, headDim: 16, rope: plainRope }),
);
const IDS = Int32Array.of(5, 3, 8, 1, 6);

async function run(program: Program, rows: Partial<Rows>): Promise<Float32Array> {
  const options = { ctxLen: 16, slots: 1, precise: true, threads: 1, cacheDir: undefined };
  const session = await cpuBackend.load(program, options);
  return (await session.run([{ slot: 0, start: 0, tokens: IDS, logits: "all", ...rows }])).slice();
}

/** Embeddings of ids. */
async function embeddingsOf(ids: readonly number[]): Promise<Float32Array> {
  const [embed] = attended.program.steps;
  const out = { name: "logits", dim: DIM };
  const take: Step = { op: "takeRows", out, x: { name: "x", dim: DIM } };
  return run(
    { ...attended.program, steps: [embed!, take], logits: out, states: out },
    { tokens: Int32Array.from(ids) },
  );
}

test("a row given as the vector of an id has the result of that id, among other ids", async () => {
  const vectors = await embeddingsOf([3, 1]);
  const mixed = await run(attended.program, { tokens: Int32Array.of(5, -1, 8, -1, 6), vectors });
  expect(mixed).toEqual(await run(attended.program, {}));
});

test("a second table gives rows without an id the row of one token", async () => {
  const [first, ...rest] = attended.program.steps;
  if (first?.op !== "embed") throw new Error("it begins with an embedding");
  const steps: Step[] = [{ ...first, vectorToken: 8 }, ...rest];
  const tokens = Int32Array.of(5, -1, 8, 1, 6);
  const got = await run({ ...attended.program, steps }, { tokens, vectors: new Float32Array(DIM) });
  expect(got).toEqual(await run(attended.program, { tokens: Int32Array.of(5, 8, 8, 1, 6) }));
});

test("an id beyond the vocabulary is refused, and so is −1 without vectors", async () => {
  for (const id of [-1, 37]) {
    await expect(run(attended.program, { tokens: Int32Array.of(id) })).rejects.toThrow(
      `token ${id}: expected an id of 0`,
    );
  }
});

test("given positions replace the places of rows, and three equal positions count as one", async () => {
  const usual = await run(attended.program, {});
  expect(await run(attended.program, { positions: Int32Array.of(0, 1, 2, 3, 4) })).toEqual(usual);
  const three = Int32Array.from({ length: 15 }, (_, i) => Math.floor(i / 3));
  expect(await run(attended.program, { positions: three })).toEqual(usual);
  expect(await run(attended.program, { positions: Int32Array.of(0, 1, 2, 2, 2) })).not.toEqual(usual);
});

test("rows of a span see all of the span, and rows before and after it give their usual results", async () => {
  const both = makeCase("rows of their own", { dim: DIM }, (draft) =>
    bidirectionalAttention(draft, { nHeads: 4, headDim: 16, rope: plainRope }),
  );
  const whole = await run(attended.program, { spans: [{ first: 0, end: 5 }] });
  const expected = await run(both.program, {});
  expect([...whole].every((value, i) => Math.abs(value - expected[i]!) < 1e-6)).toBe(true);
  const [usual, part] = [
    await run(attended.program, {}),
    await run(attended.program, { spans: [{ first: 1, end: 4 }] }),
  ];
  const width = whole.length / IDS.length;
  const row = (values: Float32Array, r: number): number[] => [...values.subarray(r * width, (r + 1) * width)];
  expect([0, 3, 4].map((r) => row(part, r))).toEqual([0, 3, 4].map((r) => row(usual, r)));
  expect(row(part, 1)).not.toEqual(row(usual, 1));
});

test("sections choose the position that rotates each pair, in runs or alternating", () => {
  const plain = { ...plainRope, style: "neox" as const, rotaryDim: 12 };
  const table = ropeTable(plain, 16);
  table.reach(16);
  const values = Float32Array.from({ length: 12 }, (_, i) => i + 1);
  const turned = (position: number): Float32Array => {
    const out = values.slice();
    rotateHead(out, 0, table, position, plain);
    return out;
  };
  for (const [interleaved, places] of [
    [false, [0, 0, 1, 1, 2, 2]],
    [true, [0, 1, 2, 0, 1, 2]],
  ] as const) {
    const out = values.slice();
    const rope = { ...plain, sections: { pairs: [2, 2, 2], interleaved } as const };
    rotateHeadBySections(out, 0, table, [7, 3, 5], rope);
    const expected = places.map((place) => turned([7, 3, 5][place]!));
    expect([...out]).toEqual(Array.from({ length: 12 }, (_, i) => expected[i % 6]![i]!));
  }
});

test("later steps add the other parts of vectors wider than an embedding, to rows without an id only", async () => {
  const [embed] = attended.program.steps;
  const [x, out] = ["x", "logits"].map((name) => ({ name, dim: DIM })) as [Buf, Buf];
  const steps: Step[] = [
    embed!,
    { op: "addGiven", x, at: 2 * DIM },
    { op: "scale", x, by: 2 },
    { op: "addGiven", x, at: DIM },
    { op: "takeRows", out, x },
  ];
  const program = { ...attended.program, steps, logits: out, states: out };
  const vectors = Float32Array.from({ length: 2 * 3 * DIM }, (_, i) => i);
  const got = await run(program, { tokens: Int32Array.of(5, -1, 8, -1, 6), vectors });
  const embedded = await embeddingsOf([...IDS]);
  const expected = Float32Array.from(got, (_, i) => {
    const [row, at] = [Math.floor(i / DIM), i % DIM];
    const given = (row - 1) / 2; // rows 1 and 3
    if (!Number.isInteger(given)) return 2 * embedded[i]!;
    const from = given * 3 * DIM + at;
    return 2 * (vectors[from]! + vectors[from + 2 * DIM]!) + vectors[from + DIM]!;
  });
  expect(got).toEqual(expected);
});

test("a one-way step ignores spans", async () => {
  const steps = attended.program.steps.map((step) => (step.op === "attention" ? { ...step, oneWay: true } : step));
  const spans = [{ first: 1, end: 4 }];
  const usual = await run(attended.program, {});
  expect(await run({ ...attended.program, steps }, { spans })).toEqual(usual);
  expect(await run(attended.program, { spans })).not.toEqual(usual);
});

test("attention within spans treats each span as a sequence of its own", async () => {
  const { program } = makeCase("spans of an encoder", { dim: DIM }, (draft) =>
    bidirectionalAttention(draft, { nHeads: 4, headDim: 16, inSpans: true }),
  );
  const whole = await run(program, {
    spans: [
      { first: 0, end: 2 },
      { first: 3, end: 5 },
    ],
  });
  const parts = [];
  for (const tokens of [IDS.subarray(0, 2), IDS.subarray(2, 3), IDS.subarray(3)]) {
    parts.push(...(await run(program, { tokens, spans: [{ first: 0, end: tokens.length }] })));
  }
  expect(whole).toEqual(Float32Array.from(parts));
});
