/** Cross attention over memories: what it computes, what changes it, and programs without it or cut in two. */
import { expect, test } from "bun:test";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import type { Program, Rows, Session } from "../../../src/engine/program/backend.ts";
import { memoryFor, memoryLayers, withoutMemory } from "../../../src/engine/program/memory.ts";
import { floatBytes } from "../../../src/engine/program/sequence-state.ts";
import { loadSplit } from "../../../src/engine/program/split.ts";
import { memoryCases, memoryOf } from "../../conformance/memory-cases.ts";
import { simdBackend } from "../../../src/engine/backends/host/simd.ts";
import { rows } from "../../conformance/draft.ts";

const [small, large] = memoryCases();
const { program } = large!;
const options = { ctxLen: 40, slots: 3, precise: true, threads: 1, cacheDir: undefined };
const [first, second] = [memoryOf("one", 33), memoryOf("other", 5)];

async function on<T>(what: Program, use: (session: Session) => Promise<T>): Promise<T> {
  const session = await cpuBackend.load(what, options);
  try {
    return await use(session);
  } finally {
    session.close();
  }
}

const run = async (session: Session, ...batch: Rows[]): Promise<number[]> => [...(await session.run(batch))];

test("cross attention is the softmax over all rows of the memory, at any position", async () => {
  const { steps, memory } = program;
  const [cross] = memoryLayers(steps);
  // a memory of equal rows has one value, whatever the scores
  const one = memoryOf("a row", 1);
  const many = { id: "many", rows: new Float32Array(7 * one.rows.length) };
  for (let i = 0; i < 7; i++) many.rows.set(one.rows, i * one.rows.length);
  expect(cross?.rows).toBe(memory?.rows);
  await on(program, async (session) => {
    const alone = await run(session, { ...rows(0, 0, 4, "all"), memory: one });
    const repeated = await run(session, { ...rows(1, 0, 4, "all"), tokens: rows(0, 0, 4, "all").tokens, memory: many });
    for (const [i, value] of repeated.entries()) expect(value).toBeCloseTo(alone[i]!, 5);
    const other = await run(session, { ...rows(0, 0, 4, "all"), memory: first });
    expect(other).not.toEqual(alone);
  });
});

test("rows without a memory get the bits of the program without cross attention, also in a batch", async () => {
  const plain = withoutMemory(program);
  const left = ["embed", "linear", "linear", "linear", "rope", "rope", "attention", "linear", "add", "takeRows"];
  expect(plain.steps.map(({ op }): string => op)).toEqual(left);
  expect(plain.memory).toBeUndefined();
  const wanted = await on(plain, (session) => run(session, rows(0, 0, 6, "all")));
  await on(program, async (session) => {
    expect(await run(session, rows(0, 0, 6, "all"))).toEqual(wanted);
    const both = await run(session, rows(0, 0, 6, "all"), { ...rows(1, 0, 3, "last"), memory: first });
    expect(both.slice(0, wanted.length)).toEqual(wanted);
    const alone = await run(session, { ...rows(2, 0, 3, "last"), tokens: rows(1, 0, 3, "last").tokens, memory: first });
    expect(both.slice(wanted.length)).toEqual(alone);
  });
});

test("withoutMemory changes no program whose product has a bias", () => {
  const [, , , biased] = memoryCases();
  expect(withoutMemory(biased!.program)).toBe(biased!.program);
});

test("each run sets its slot's memory: another one, none, or the first again", async () => {
  await on(program, async (session) => {
    const at = (memory: typeof first | undefined): Promise<number[]> =>
      run(session, { ...rows(0, 0, 3, "all"), memory });
    const results = [await at(first), await at(second), await at(undefined), await at(first)];
    const fresh = { ...rows(0, 0, 3, "all"), slot: 1, memory: second };
    expect(results[1]).toEqual(await run(session, fresh));
    expect(results[3]).toEqual(results[0]!);
    expect(new Set(results.map(String)).size).toBe(3);
  });
});

test("a memory that is empty, too long, or not made of whole rows is refused", async () => {
  await on(program, async (session) => {
    for (const length of [0, 25, 301 * 24]) {
      const memory = { id: "bad", rows: new Float32Array(length) };
      const got = run(session, { ...rows(0, 0, 3, "all"), memory });
      await expect(got).rejects.toThrow(`a memory of ${length} values, expected up to 300 rows of 24`);
    }
    const { memory: _memory, ...without } = program;
    await on(without, async (plain) => {
      const got = run(plain, { ...rows(0, 0, 3, "all"), memory: first });
      await expect(got).rejects.toThrow("expected up to 0 rows of 0");
    });
  });
});

test("a split program keeps the memory in the part with cross attention", async () => {
  const whole = await on(program, (session) => run(session, { ...rows(0, 0, 6, "all"), memory: first }));
  const parts = await loadSplit(program, options, { front: cpuBackend, back: cpuBackend, count: 2 });
  expect(await run(parts, { ...rows(0, 0, 6, "all"), memory: first })).toEqual(whole);
  parts.close();
  expect(memoryFor(program.steps, program.memory)?.steps).toEqual(program.memory!.steps);
  expect(memoryFor(withoutMemory(program).steps, program.memory)).toBeUndefined();
});

test("the bytes of a slot include its memory", () => {
  for (const { program: each } of [small!, large!]) {
    const [cross] = memoryLayers(each.steps);
    const bytes = 4 * 2 * cross!.rows * cross!.nKvHeads * cross!.headDim;
    expect(floatBytes(each.steps).once - floatBytes(withoutMemory(each).steps).once).toBe(bytes);
  }
});

test("rows with and without a memory get the same bits alone and in a batch on the fast kernels", async () => {
  for (const { program: each } of memoryCases()) {
    for (const precise of [true, false]) {
      const session = await simdBackend.load(each, { ...options, precise });
      const [one, other] = [memoryOf("short", 2), memoryOf("long", 9)];
      const batch: Rows[] = [
        { ...rows(0, 0, 5, "all"), memory: one },
        rows(1, 0, 4, "all"),
        { ...rows(2, 0, 1, "last"), memory: other },
      ];
      const apart: number[] = [];
      for (const entry of batch) apart.push(...(await run(session, entry)));
      expect(await run(session, ...batch)).toEqual(apart);
      session.close();
    }
  }
});

test("a batch without a memory skips cross attention, with the same bits", async () => {
  const [plain, whole] = [
    await simdBackend.load(withoutMemory(program), options),
    await simdBackend.load(program, options),
  ];
  expect(await run(whole, rows(0, 0, 6, "all"))).toEqual(await run(plain, rows(0, 0, 6, "all")));
  expect(whole.bytes.kv - plain.bytes.kv).toBe(3 * 320 * (48 + 40) * 4); // slots, padded rows, key and padded value
  plain.close();
  whole.close();
});
