/** Slots share memory: a request without room waits, or stops and continues later with the same answer. */
import { describe, expect, test } from "bun:test";
import { simdLevels } from "../backends/simd/levels.ts";
import { open } from "./embedded-engine.ts";
import { expectedText, makeBench, type Answer, type Bench } from "./fakes.ts";

const PROMPTS = ["once upon a time there was", "a small red fox", "who lived by the sea"];

/** Maximum number of tokens held by slots at once, until they were released, as memory is counted. */
function mostHeld({ session }: Bench): number {
  const held = new Map<number, number>();
  let most = 0;
  for (const { slot, start, tokens } of session.inputs) {
    held.set(slot, Math.max(held.get(slot) ?? 0, start + tokens.length));
    most = Math.max(
      most,
      [...held.values()].reduce((sum, count) => sum + count, 0),
    ); // released slots count on
  }
  return most;
}

const textOf = ({ pieces }: Answer): string => pieces.map((piece) => piece.text).join("");

describe.each([
  { name: "evaluated again", more: { prefixBytes: 0 } },
  { name: "evaluated again, as rows of decode", more: { prefixBytes: 0, verifies: true } },
  { name: "from the prefix cache", more: { blocks: true, verifies: true } },
  { name: "with recurrent states", more: { recurrent: true, blocks: true } },
])("a stopped sequence continues where it was ($name)", ({ more }) => {
  test("three answers are complete with memory for one and a half", async () => {
    const bench = makeBench({ slots: 3, ctxLen: 400, growth: true, kvBytes: 320, ...more });
    const answers = await Promise.all(PROMPTS.map((prompt) => bench.ask(prompt, { num_predict: 150 })));
    expect(answers.map(textOf)).toEqual(PROMPTS.map((prompt) => expectedText(prompt, 150)));
    expect(bench.session.released.length).toBeGreaterThan(0);
    for (const [i, { prompt, end }] of answers.entries()) {
      expect(prompt).toMatchObject({ tokens: PROMPTS[i]!.length, cached: 0 });
      expect(end).toMatchObject({ reason: "length", statistics: { evalCount: 150 } });
    }
    await bench.engine.close();
  });
});

test("the generated tokens of a stopped answer are evaluated again as rows of decode", async () => {
  const { engine, session, ask } = makeBench({
    slots: 2,
    ctxLen: 400,
    growth: true,
    kvBytes: 256,
    prefixBytes: 0,
    verifies: true,
  });
  await Promise.all(PROMPTS.slice(0, 2).map((prompt) => ask(prompt, { num_predict: 150, seed: 1 })));
  const again = session.inputs.filter(
    ({ drafted, logits, tokens }) => drafted && logits === "all" && tokens.length > 8,
  );
  expect(again.length).toBeGreaterThan(0);
  for (const { start } of again) expect(start).toBeGreaterThanOrEqual(Math.min(...PROMPTS.map(({ length }) => length)));
  await engine.close();
});

test("a request without room for its prompt waits, and a request alone may exceed the budget", async () => {
  const { engine, session, ask } = makeBench({ slots: 2, ctxLen: 400, growth: true, kvBytes: 256, prefixBytes: 0 });
  const order: string[] = [];
  const first = ask("a".repeat(100), { num_predict: 60 }).then(() => order.push("first"));
  const second = ask("b".repeat(150), { num_predict: 1 }).then(() => order.push("second"));
  await Promise.all([first, second]);
  expect(order).toEqual(["first", "second"]);
  expect(session.inputs.findIndex(({ tokens }) => tokens[0] === 98)).toBeGreaterThan(60); // not before the first ended
  const { text } = await ask("c".repeat(300), { num_predict: 50 });
  expect(text).toBe(expectedText("c".repeat(300), 50));
  await engine.close();
});

test("idle slots release their memory first, and their prefix is not reused afterwards", async () => {
  const bench = makeBench({ slots: 2, ctxLen: 400, growth: true, kvBytes: 256, prefixBytes: 0 });
  const { engine, session, ask } = bench;
  await ask("a".repeat(130), { num_predict: 1 });
  await ask("b".repeat(150), { num_predict: 1 }); // another slot: both together are too much
  expect(session.released).toEqual([0]);
  expect(mostHeld(bench)).toBe(280); // the first was released by then
  const { prompt, text } = await ask("a".repeat(131), { num_predict: 3 });
  expect(prompt!.cached).toBe(0);
  expect(text).toBe(expectedText("a".repeat(131), 3));
  await engine.close();
});

test("the memory of an embedded text counts in the budget, and is released if others need it", async () => {
  const bench = makeBench({ slots: 2, ctxLen: 400, growth: true, kvBytes: 256, prefixBytes: 0 });
  const { engine, session, embedded, ask } = bench;
  engine.embed({ id: 1, texts: [new Int32Array(200).fill(100)] });
  while (embedded.length === 0) await Bun.sleep(1);
  expect(session.released).toEqual([]);
  const { text } = await ask("b".repeat(60), { num_predict: 30 });
  expect(text).toBe(expectedText("b".repeat(60), 30));
  expect(session.released).toEqual([0]);
  await engine.close();
});

test("a short prompt in a slot with the memory of a long one leaves room for another, and both are answered", async () => {
  const { engine, ask } = makeBench({ slots: 2, ctxLen: 400, growth: true, kvBytes: 256, prefixBytes: 0 });
  await ask("b".repeat(150), { num_predict: 1 }); // its slot has memory for 192
  const [a, b] = ["a".repeat(30), "b".repeat(20)] as const;
  const answers = await Promise.race([
    Promise.all([ask(a, { num_predict: 60 }), ask(b, { num_predict: 60 })]),
    Bun.sleep(20_000),
  ]);
  expect(answers?.map(textOf)).toEqual([expectedText(a, 60), expectedText(b, 60)]);
  await engine.close();
}, 30_000);

test("a request fails as busy if the machine has no memory for it, and others continue", async () => {
  const free = { bytes: 2 ** 30 };
  const more = { growth: true, prefixBytes: 0, freeBytes: () => free.bytes };
  const { engine, session, ask } = makeBench({ slots: 2, ctxLen: 400, ...more });
  const [a, b] = PROMPTS as [string, string];
  const long = ask(a, { num_predict: 150 });
  const short = ask(b, { num_predict: 30 }); // stays below the first 64 tokens
  while (session.inputs.length < 6) await Bun.sleep(0);
  free.bytes = 2 ** 20;
  expect((await long).end).toMatchObject({
    kind: "error",
    code: "busy",
    message: "out of memory: keys and values of 65 tokens: expected 64 MiB free, got 1 MiB",
  });
  expect(textOf(await short)).toBe(expectedText(b, 30));
  expect([engine.active, engine.busySlots]).toEqual([0, 0]);
  expect(session.released.at(-1)).toBe(0); // the memory that it had
  free.bytes = 2 ** 30;
  expect(textOf(await ask(a, { num_predict: 150 }))).toBe(expectedText(a, 150));
  await engine.close();
});

test("idle slots release their memory before a request fails for lack of memory", async () => {
  const freeBytes = (): number => (session.released.length > 0 || session.inputs.length === 0 ? 2 ** 30 : 0);
  const { engine, session, ask } = makeBench({ slots: 2, ctxLen: 400, growth: true, prefixBytes: 0, freeBytes });
  await ask("a".repeat(30), { num_predict: 1 });
  const { text } = await ask("b".repeat(90), { num_predict: 3 });
  expect(text).toBe(expectedText("b".repeat(90), 3));
  expect(session.released).toEqual([0]);
  await engine.close();
});

test("a stopped sequence can be cancelled", async () => {
  const { engine, ask, session } = makeBench({ slots: 2, ctxLen: 400, growth: true, kvBytes: 256, prefixBytes: 0 });
  const first = ask(PROMPTS[0]!, { num_predict: 190 });
  void ask(PROMPTS[1]!, { num_predict: 190 }, { id: 77 });
  while (session.released.length === 0 && engine.active === 2) await Bun.sleep(0);
  engine.cancel(77);
  expect(textOf(await first)).toBe(expectedText(PROMPTS[0]!, 190));
  expect(engine.active).toBe(0);
  await engine.close();
});

test.skipIf(simdLevels.length === 0)(
  "a stopped answer of a real model has the same text as without a stop",
  async () => {
    const got: string[][] = [];
    const runs: number[] = [];
    for (const cacheMemory of [1e9, 3072 * 128]) {
      const engine = await open(simdLevels[0]!.backend, undefined, [20], { cacheMemory });
      const options = { temperature: 1.1, num_predict: 80, draft_num_predict: 0 };
      got.push(
        await Promise.all([
          engine.ask("Tell me a long story about a fox.", { ...options, seed: 1 }),
          engine.ask("Tell me a long story about the sea.", { ...options, seed: 2 }),
        ]),
      );
      runs.push(engine.runs[0]!);
      await engine.engine.close();
    }
    expect(got[1]).toEqual(got[0]!);
    expect(runs[1]!).toBeGreaterThan(runs[0]! + 10); // not side by side
  },
);
