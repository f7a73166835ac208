/** Slots of the reference with recurrent steps: checkpoints, copies and shifts. */
import { expect, test } from "bun:test";
import type { Program, Session } from "../../../src/engine/program/backend.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { conformanceCases } from "../../conformance/cases.ts";
import { VOCAB as CASE_VOCAB } from "../../conformance/draft.ts";
import { batchOf, hybridProgram, VOCAB } from "./hybrid.ts";

const program = hybridProgram();
const load = (which: Program = program): Promise<Session> =>
  cpuBackend.load(which, { ctxLen: 32, slots: 2, precise: true, threads: 1, cacheDir: undefined });

const tokens = (from: number, count: number): Int32Array =>
  Int32Array.from({ length: count }, (_, i) => (from + 5 * i) % Math.min(VOCAB, CASE_VOCAB));

const compressed = conformanceCases().find(({ name }) => name === "compressedAttention: 3 chosen blocks")!.program;

test.each([
  ["recurrences", program],
  ["blocks of 4 positions, cut in the middle", compressed],
])("%s: a run after a restored checkpoint has the same bits, in its own slot and in another", async (_, which) => {
  const session = await load(which);
  await session.run(batchOf(0, 0, tokens(1, 9)));
  const checkpoint = await session.checkpoints!.save(0, 9);
  expect(checkpoint.bytes).toBeGreaterThan(0);
  const first = (await session.run(batchOf(0, 9, tokens(3, 4)))).slice();
  await session.run(batchOf(0, 13, tokens(7, 2)));
  session.checkpoints!.restore(0, checkpoint);
  expect(await session.run(batchOf(0, 9, tokens(3, 4)))).toEqual(first);
  session.copy({ from: 0, to: 1, length: 9 });
  session.checkpoints!.restore(1, checkpoint);
  expect(await session.run(batchOf(1, 9, tokens(3, 4)))).toEqual(first);
  session.close();
});

test("a sequence in chunks beside another has the bits of one run, and a run from position 0 clears the slot", async () => {
  const session = await load();
  const whole = (await session.run(batchOf(0, 0, tokens(2, 12)))).slice();
  const parts: number[] = [];
  for (const [start, end] of [
    [0, 5],
    [5, 6],
    [6, 12],
  ] as const) {
    const beside = { slot: 1, start, tokens: tokens(4, end - start), logits: "none" } as const;
    const own = { slot: 0, start, tokens: tokens(2, 12).subarray(start, end), logits: "all" } as const;
    parts.push(...(await session.run([beside, own])));
  }
  expect(Float32Array.from(parts)).toEqual(whole);
  session.close();
});

test("a run that begins neither at 0 nor at the length of its slot is refused", async () => {
  const session = await load();
  await session.run(batchOf(0, 0, tokens(1, 9)));
  await expect(session.run(batchOf(0, 8, tokens(1, 1)))).rejects.toThrow("rows from 8 on, but its states stand at 9");
  expect(() => session.checkpoints!.save(0, 8)).toThrow("slot 0 holds 9 tokens, not 8");
  session.close();
});

test("a slot continues from its new length after a context shift", async () => {
  const session = await load();
  await session.run(batchOf(0, 0, tokens(1, 30)));
  session.shift(0, { keep: 2, discard: 14, length: 30 });
  expect((await session.run(batchOf(0, 16, tokens(1, 3)))).every(Number.isFinite)).toBe(true);
  session.close();
});

test("a program that keeps keys and values only has no checkpoints", async () => {
  const steps = program.steps.filter(({ op }) => op !== "deltaRule" && op !== "causalConv");
  expect((await load({ ...program, steps })).checkpoints).toBeUndefined();
});
