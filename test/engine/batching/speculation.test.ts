/** Steps with drafted tokens: answers are the same to the last token, and drafts are made only if they save time. */
import { expect, test } from "bun:test";
import type { EventLoop } from "../../../src/engine/batching/event-loop.ts";
import { systemLoop } from "../../../src/engine/batching/event-loop.ts";
import { AppError } from "../../../src/base/errors.ts";
import { makeDecodeCosts } from "../../../src/engine/batching/decode-costs.ts";
import { makeLookup } from "../../../src/engine/batching/prompt-lookup.ts";
import type { SequenceRequest } from "../../../src/engine/batching/sequence.ts";
import type { SamplingOptions } from "../../../src/engine/text/sampling/options.ts";
import { END, expectedText, hashNext, makeBench, type Answer, type Next } from "./fakes.ts";

/** A repeated text of 40 letters, but every fourth time with another letter at its end. */
const editNext: Next = (tokens) => {
  const at = tokens.length % 40;
  const round = Math.floor(tokens.length / 40);
  return 97 + (at === 39 && round % 4 === 3 ? 25 : (at * at) % 23);
};
const PROMPT = new TextDecoder().decode(Uint8Array.from({ length: 80 }, (_, i) => editNext(Array(i).fill(0))));

const REQUESTS: readonly { options: Partial<SamplingOptions>; more?: Partial<SequenceRequest> }[] = [
  { options: { temperature: 0 } },
  { options: { temperature: 1.2, seed: 42, top_k: 40 } },
  { options: { temperature: 1.4, seed: 7, top_k: 0, top_p: 1, min_p: 0 } },
  { options: { temperature: 0, stop: ["sz"] } },
  { options: { temperature: 0 }, more: { logprobs: 2 } },
  {
    options: {
      temperature: 1,
      seed: 3,
      repeat_penalty: 1.3,
      frequency_penalty: 0.2,
      presence_penalty: 0.1,
    },
  },
  { options: { temperature: 0.8, seed: 5, mirostat: 2 } },
  { options: { temperature: 0.8, seed: 5, mirostat: 1 } },
];

const plain = ({ pieces, end }: Answer) => ({
  text: pieces.map((piece) => piece.text).join(""),
  logprobs: pieces.flatMap((piece) => piece.logprobs ?? []),
  reason: end.kind === "done" && end.reason,
  stop: end.kind === "done" && end.stopSequence,
  tokens: end.kind === "done" && [...end.tokens],
  count: end.kind === "done" && end.statistics.evalCount,
});

/** A clock that advances by the cost of runs. */
function makeClock(cost: (rows: number) => number): {
  loop: EventLoop;
  onRun: (rows: number) => void;
} {
  let now = 0;
  return {
    loop: { ...systemLoop(), nowNs: () => now },
    onRun: (rows) => void (now += cost(rows) * 1e6),
  };
}
const FREE = (rows: number): number => 20 + 0.01 * rows;

type Setup = Parameters<typeof makeBench>[0];

async function answers(verifies: boolean, setup: Setup = {}): Promise<{ answers: Answer[]; steps: number }> {
  const { engine, session, ask } = makeBench({
    slots: REQUESTS.length,
    ctxLen: 400,
    next: editNext,
    verifies,
    ...makeClock(FREE),
    ...setup,
  });
  const said = REQUESTS.map(({ options, more }) => ask(PROMPT, { num_predict: 150, ...options }, more));
  const all = await Promise.all(said);
  await engine.close();
  return { answers: all, steps: session.runs.length };
}

test("answers are the same with drafts and without, for any sampling options, in fewer steps", async () => {
  const [some, none] = [await answers(true), await answers(false)];
  expect(some.answers.map(plain)).toEqual(none.answers.map(plain));
  expect(plain(some.answers[3]!).stop).toBe("sz");
  expect(some.steps).toBeLessThan(none.steps - 20);
});

test("each answer alone is the same with drafts and without", async () => {
  for (const { options, more } of REQUESTS) {
    const got: unknown[] = [];
    for (const verifies of [true, false]) {
      const { engine, session, ask } = makeBench({
        ctxLen: 400,
        next: editNext,
        verifies,
        ...makeClock(FREE),
      });
      got.push(plain(await ask(PROMPT, { num_predict: 150, ...options }, more)));
      if (verifies) expect(session.inputs.some(({ drafted }) => drafted)).toBe(true);
      await engine.close();
    }
    expect(got[0]).toEqual(got[1]);
  }
});

test("a repeating text takes few steps, and its answer ends at num_predict", async () => {
  const next: Next = (tokens) => 97 + (tokens.length % 7);
  for (const num_predict of [60, 61, 67]) {
    const { engine, session, ask } = makeBench({
      ctxLen: 400,
      next,
      verifies: true,
      ...makeClock(FREE),
    });
    const { text, end } = await ask("abcdefgabcdefg".slice(0, 14), { num_predict });
    expect(text).toHaveLength(num_predict);
    expect(end).toMatchObject({
      kind: "done",
      reason: "length",
      statistics: { evalCount: num_predict },
    });
    expect(session.runs.length).toBeLessThan(12);
    await engine.close();
  }
});

test("a full context is shifted at the same token with drafts and without", async () => {
  const next: Next = (tokens) => 97 + (tokens.length % 5);
  const got: unknown[] = [];
  for (const verifies of [true, false]) {
    const { engine, ask } = makeBench({ ctxLen: 48, next, verifies, ...makeClock(FREE) });
    got.push(plain(await ask("abcdeabcdeabcde", { num_predict: 200 })));
    got.push(plain(await ask("abcdeabcdeabcdeab", { num_predict: 30 }, { shift: false })));
    await engine.close();
  }
  expect(got.slice(0, 2)).toEqual(got.slice(2));
});

test("an end token among drafted tokens ends the answer, and the next turn reuses its prefix", async () => {
  const next: Next = (tokens) => (tokens.length === 60 ? END : 97 + (tokens.length % 7));
  const { engine, session, ask } = makeBench({
    ctxLen: 400,
    next,
    verifies: true,
    ...makeClock(FREE),
  });
  const first = await ask("abcdefgabcdefg", { num_predict: 100 });
  expect(first.end).toMatchObject({ reason: "stop" });
  expect(first.text).toHaveLength(46);
  const more = `abcdefgabcdefg${first.text}!`;
  const { prompt } = await ask(more, { num_predict: 3 });
  expect(prompt!.cached).toBeGreaterThanOrEqual(56); // all but the last decoded tokens
  expect(session.inputs.some(({ drafted }) => drafted)).toBe(true);
  await engine.close();
});

test("drafts are rare if each row costs as much as a step", async () => {
  const { engine, session, ask } = makeBench({
    ctxLen: 1200,
    next: editNext,
    verifies: true,
    ...makeClock((r) => 20 * r),
  });
  await ask(PROMPT, { num_predict: 1000 });
  const drafted = session.inputs.filter(({ drafted }) => drafted).length;
  expect(drafted).toBeGreaterThan(0);
  expect(drafted).toBeLessThan(80);
  const cost = session.runs.slice(1).reduce((sum, run) => sum + 20 * run[0]!.count, 0);
  expect(cost).toBeLessThan(1.1 * 20 * 1000);
  await engine.close();
});

test("drafts that keep being wrong cost less than 5 % of the time", async () => {
  // two letters in a random order repeat their n-grams all the time, and predict nothing
  const next: Next = (tokens) => 97 + (hashNext(tokens) % 2);
  const { engine, session, ask } = makeBench({
    ctxLen: 1200,
    next,
    verifies: true,
    ...makeClock((r) => 20 + 4 * r),
  });
  const { text } = await ask("ab", { num_predict: 1000 });
  expect(text).toBe(expectedText("ab", 1000, next));
  const cost = session.runs.slice(1).reduce((sum, run) => sum + 20 + 4 * run[0]!.count, 0);
  expect(cost).toBeLessThan(1.05 * 24 * 1000);
  await engine.close();
});

test("a step that fails with drafts is run again without them", async () => {
  const { engine, session, ask } = makeBench({
    ctxLen: 400,
    next: editNext,
    verifies: true,
    ...makeClock(FREE),
  });
  const { run } = session;
  let failed = 0;
  session.run = (batch) => {
    if (!batch.some(({ drafted }) => drafted)) return run(batch);
    failed++;
    return Promise.reject(new AppError("runner", "a logit is NaN"));
  };
  const { text } = await ask(PROMPT, { num_predict: 60 });
  expect(text).toBe(expectedText(PROMPT, 60, editNext));
  expect(failed).toBeGreaterThan(0);
  await engine.close();
});

test("a lookup drafts from the longest match, or the latest of equal ones, and never drafts rows of media", () => {
  const lookup = makeLookup();
  const ids = [1, 2, 3, 4, 50, 9, 2, 3, 4, 60, 7, 1, 2, 3, 4];
  expect(lookup.draft(ids, 3)).toEqual({ tokens: Int32Array.of(50, 9, 2), match: 4 });
  expect(lookup.draft([...ids, 60, 7, 2, 3, 4], 2)).toEqual({
    tokens: Int32Array.of(60, 7),
    match: 3,
  });
  expect(lookup.draft([1, 2], 4)).toBeUndefined();
  expect(lookup.draft([5, 6, 7, -3, -4, 5, 6, 7], 4)).toBeUndefined();
  expect(lookup.draft([5, 6, 7, 8, -4, 5, 6, 7], 4)).toEqual({
    tokens: Int32Array.of(8),
    match: 3,
  });
  expect(lookup.draft([5, 6, 7, 8, -4, 5, 6, 7], 0)).toBeUndefined();
});

test("a lookup in a long text finds a distant match", () => {
  const lookup = makeLookup();
  const ids = Array.from({ length: 20_000 }, (_, i) => (i * 7919) % 19_997);
  expect(lookup.draft([...ids, ...ids.slice(100, 140)], 5)).toEqual({
    tokens: Int32Array.from(ids.slice(140, 145)),
    match: 32,
  });
});

test("the costs of steps are measured or estimated, and an old measurement fades", () => {
  const costs = makeDecodeCosts();
  expect(costs.of(1)).toBeUndefined();
  costs.note(1, 100);
  expect(costs.of(1)).toBe(100);
  expect(costs.of(11)).toBeCloseTo(200);
  costs.note(8, 500);
  expect(costs.of(8)).toBeCloseTo(500);
  expect(costs.of(16)!).toBeGreaterThan(500);
  costs.note(4, 50_000); // delayed at its first try: it is tried again
  expect(costs.of(4)).toBeCloseTo(390);
  for (let i = 0; i < 400; i++) costs.note(1, 100);
  expect(costs.of(8)!).toBeLessThan(400);
  for (let i = 0; i < 30; i++) costs.note(1, 10_000); // delayed, and finally believed
  expect(costs.of(1)!).toBeGreaterThan(5000);
});
