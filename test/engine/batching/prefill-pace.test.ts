/**
 * Prompts in chunks: other requests wait a little longer for their tokens, runs end soon, and nothing else changes.
 */
import { describe, expect, test } from "bun:test";
import type { EventLoop } from "../../../src/engine/batching/event-loop.ts";
import { systemLoop } from "../../../src/engine/batching/event-loop.ts";
import { makePace } from "../../../src/engine/batching/prefill-pace.ts";
import type { Work } from "../../../src/engine/batching/scheduler.ts";
import { expectedText, makeBench } from "./fakes.ts";

const MOST = { chunkAlone: 512, chunkShared: 512 };

function workOf(kind: Work["kind"], count: number): Work {
  const rows = [{ slot: 0, start: 0, tokens: new Int32Array(count), logits: "none" as const }];
  return { kind, rows, sequences: [] };
}

/** A machine whose runs of a prompt have a fixed cost and a cost per token. */
function pieces(cost: { run: number; token: number; decode: number }, isShared: boolean, most = MOST): number[] {
  const pace = makePace(most);
  const sizes: number[] = [];
  for (let i = 0; i < 40; i++) {
    pace.took(workOf("decode", 1), cost.decode, false);
    const size = isShared ? pace.limits.chunkShared : pace.limits.chunkAlone;
    sizes.push(size);
    pace.took(workOf("prefill", size), cost.run + cost.token * size, isShared);
  }
  return sizes;
}

describe("pieces of prompts", () => {
  test.each([
    { run: 5e6, token: 2e6, decode: 25e6 },
    { run: 0.2e6, token: 0.05e6, decode: 2e6 },
    { run: 40e6, token: 15e6, decode: 200e6 },
  ])("take one and a half decode steps beside other requests: %p", (cost) => {
    const sizes = pieces(cost, true);
    for (const size of sizes.slice(8)) {
      const took = cost.run + cost.token * size;
      expect(took).toBeLessThanOrEqual(1.6 * cost.decode);
      expect(took).toBeGreaterThan(0.9 * cost.decode);
    }
  });

  test("take a second alone, or as many tokens as a run may have", () => {
    const slow = pieces({ run: 1e8, token: 1e7, decode: 1e8 }, false).slice(8);
    for (const size of slow) expect(1e8 + 1e7 * size).toBeGreaterThan(0.8e9);
    for (const size of slow) expect(1e8 + 1e7 * size).toBeLessThan(1.05e9);
    expect(pieces({ run: 1e6, token: 1e5, decode: 1e7 }, false).at(-1)).toBe(512);
    expect(pieces({ run: 1e6, token: 1e5, decode: 1e7 }, false, { chunkAlone: 16, chunkShared: 4 }).at(-1)).toBe(16);
  });

  test("have at least 8 tokens beside others and 32 alone, or as many as a run may have", () => {
    expect(pieces({ run: 1e9, token: 1e9, decode: 1e6 }, true).at(-1)).toBe(8);
    expect(pieces({ run: 1e9, token: 1e9, decode: 1e6 }, false).at(-1)).toBe(32);
    expect(pieces({ run: 1e9, token: 1e9, decode: 1e6 }, false, { chunkAlone: 16, chunkShared: 4 }).at(-1)).toBe(16);
    expect(pieces({ run: 1e9, token: 1e9, decode: 1e6 }, true, { chunkAlone: 16, chunkShared: 4 }).at(-1)).toBe(4);
  });

  test("stay long after the short end of a prompt", () => {
    const pace = makePace(MOST);
    for (let i = 0; i < 9; i++) pace.took(workOf("prefill", pace.limits.chunkAlone), 1e6, false);
    expect(pace.limits.chunkAlone).toBe(512);
    pace.took(workOf("prefill", 3), 1e6, false);
    expect(pace.limits.chunkAlone).toBe(512);
  });
});

test("runs that can be divided are longer, and others still get their tokens in time", async () => {
  const DECODE_NS = 20e6;
  const ROW_NS = 1.1e6; // a run of all 32 rows takes longer than the limit for others
  let now = 0;
  const loop: EventLoop = { ...systemLoop(), nowNs: () => now };
  const times: number[] = [];
  const partsOf = (budgetNs: number): number => {
    const parts = Math.max(1, Math.floor(budgetNs / ROW_NS));
    now += parts * ROW_NS;
    return parts;
  };
  const { engine, session, ask } = makeBench({ ctxLen: 3000, chunk: 512, chunkShared: 512, loop, partsOf });
  const { run } = session;
  session.run = async (batch) => {
    now += DECODE_NS;
    times.push(now);
    return run(batch);
  };
  const writer = ask("once upon a time", { num_predict: 200 });
  while (times.length < 50) await loop.nextTurn();
  const long = "a long prompt ".repeat(150);
  const reader = ask(long, { num_predict: 1 });
  expect((await writer).text).toBe(expectedText("once upon a time", 200));
  expect((await reader).text).toBe(expectedText(long, 1));
  const gaps = times.slice(50).map((time, i) => time - times[i + 49]!);
  expect(gaps.filter((gap) => gap > DECODE_NS).length).toBeGreaterThan(20);
  expect(Math.max(...gaps)).toBeLessThanOrEqual(2.6 * DECODE_NS);
  const pieces = session.runs.flat().filter(({ count }) => count > 1);
  expect(pieces.filter(({ count }) => count === 32).length).toBeGreaterThan(50);
  await engine.close();
});

test.each([false, true])(
  "a run that is cancelled between its parts changes no answer; recurrent: %p",
  async (recurrent) => {
    const { engine, session, ask } = makeBench({
      ctxLen: 900,
      recurrent,
      blocks: true,
      partsOf: () => 1,
      chunkShared: 99,
    });
    const writer = ask("once upon a time", { num_predict: 300 });
    for (let i = 0; i < 12; i++) {
      const prompt = `${"a prompt of some length ".repeat(1 + (i % 3))}${i % 4}`;
      void ask(prompt, {}, { id: 100 + i });
      for (let turn = 0; turn < 10 + i; turn++) await new Promise((resolve) => void setImmediate(resolve));
      engine.cancel(100 + i);
      if (i % 2 === 0) expect((await ask(prompt)).text).toBe(expectedText(prompt, 8));
    }
    expect((await writer).text).toBe(expectedText("once upon a time", 300));
    expect(engine.busySlots).toBe(0);
    expect(session.runs.length).toBeGreaterThan(100);
    await engine.close();
  },
);

test("other requests get the same tokens at most three times as late while a long prompt is evaluated", async () => {
  const DECODE_NS = 20e6;
  let now = 0;
  const loop: EventLoop = { ...systemLoop(), nowNs: () => now };
  const times: number[] = [];
  const { engine, session, ask } = makeBench({ slots: 2, ctxLen: 3000, chunk: 512, chunkShared: 512, loop });
  const { run } = session;
  session.run = async (batch) => {
    const tokens = batch.reduce((sum, rows) => sum + rows.tokens.length, 0);
    const isDecode = tokens === 1;
    now += isDecode ? DECODE_NS : 3e6 + 0.7e6 * tokens;
    if (isDecode) times.push(now);
    return run(batch);
  };
  const writer = ask("once upon a time", { num_predict: 200 });
  while (times.length < 50) await loop.nextTurn();
  const long = "a long prompt ".repeat(150);
  const reader = ask(long, { num_predict: 1 });
  expect((await writer).text).toBe(expectedText("once upon a time", 200));
  expect((await reader).text).toBe(expectedText(long, 1));
  const gaps = times.slice(1).map((time, i) => time - times[i]!);
  expect(gaps.slice(0, 45).every((gap) => gap === DECODE_NS)).toBe(true);
  expect(gaps.filter((gap) => gap > DECODE_NS).length).toBeGreaterThan(20); // the prompt was read meanwhile
  expect(Math.max(...gaps)).toBeLessThanOrEqual(3 * DECODE_NS);
  await engine.close();
});

test("a request that is cancelled during its prompt ends after the current chunk", async () => {
  const { engine, session, ask } = makeBench({ ctxLen: 3000, chunk: 16, delayMs: 5 });
  void ask("a long prompt ".repeat(150), {}, { id: 77 });
  while (session.runs.length < 3) await Bun.sleep(1);
  engine.cancel(77);
  const count = session.runs.length;
  const { text } = await ask("another"); // it is not delayed
  expect(text).toBe(expectedText("another", 8));
  const pieces = session.inputs.filter(({ tokens }) => tokens.length > 8);
  expect(pieces.length).toBe(count);
  expect(engine.busySlots).toBe(0);
  await engine.close();
});
