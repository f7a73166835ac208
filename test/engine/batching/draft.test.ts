/** A draft model: answers are the same to the last token, and it drafts only if that saves time. */
import { expect, test } from "bun:test";
import { systemLoop } from "../../../src/engine/batching/event-loop.ts";
import type { SequenceRequest } from "../../../src/engine/batching/sequence.ts";
import type { SamplingOptions } from "../../../src/engine/text/sampling/options.ts";
import { makeRng } from "../../../src/engine/text/rng.ts";
import { END, expectedText, hashNext, makeBench, VOCAB, type Answer, type Bench, type Next } from "./fakes.ts";

/** The model's tokens, except that every fifth one differs. */
const nearlyNext: Next = (tokens) => (tokens.length % 5 === 0 ? 98 : hashNext(tokens));

const REQUESTS: readonly { options: Partial<SamplingOptions>; more?: Partial<SequenceRequest> }[] = [
  { options: {} },
  { options: { temperature: 1.2, seed: 42, top_k: 40 } },
  { options: { temperature: 1.4, seed: 7, top_k: 0, top_p: 1 } },
  { options: { stop: ["zq", "ab"] } },
  { options: {}, more: { logprobs: 2 } },
  { options: { temperature: 1, seed: 3, repeat_penalty: 1.3, frequency_penalty: 0.2, presence_penalty: 0.1 } },
  { options: { temperature: 0.8, seed: 5, mirostat: 2 } },
  { options: { temperature: 0.8, seed: 5, mirostat: 1 } },
];

/** A clock that advances by the cost of runs of the two models, in milliseconds. */
function makeTimes(model: (rows: number) => number, draft: (rows: number) => number) {
  const time = { now: 0 };
  const onRun = (cost: (rows: number) => number) => (rows: number) => void (time.now += cost(rows) * 1e6);
  return { time, loop: { ...systemLoop(), nowNs: () => time.now }, onRun: onRun(model), draft: onRun(draft) };
}

type Setup = Parameters<typeof makeBench>[0];

/** A model that costs 20 ms a step, with a draft model of 2 ms. */
function withDraft({ draft, ...setup }: Setup = {}): Bench & { readonly time: { now: number } } {
  const times = makeTimes(
    (rows) => 20 + 0.2 * rows,
    () => 2,
  );
  const { loop, onRun, time } = times;
  const bench = makeBench({
    ctxLen: 400,
    prefixBytes: 0,
    verifies: true,
    loop,
    onRun,
    ...setup,
    ...(draft && { draft: { next: nearlyNext, onRun: times.draft, ...draft } }),
  });
  return { ...bench, time };
}

const plain = ({ pieces, end }: Answer) => ({
  text: pieces.map((piece) => piece.text).join(""),
  logprobs: pieces.flatMap((piece) => piece.logprobs ?? []),
  end: end.kind === "done" && { reason: end.reason, stop: end.stopSequence, tokens: [...end.tokens] },
});

test("answers are the same with a draft model and without, together and alone, in fewer steps", async () => {
  for (const requests of [REQUESTS, ...REQUESTS.map((each) => [each])]) {
    const got: unknown[][] = [];
    const steps: number[] = [];
    for (const draft of [{}, undefined]) {
      const { engine, session, ask } = withDraft({ slots: 8, ...(draft && { draft }) });
      const asked = requests.map(({ options, more }, i) =>
        ask(`prompt ${i % 3}`, { num_predict: 90, ...options }, more),
      );
      got.push((await Promise.all(asked)).map(plain));
      steps.push(session.runs.length);
      await engine.close();
    }
    expect(got[0]).toEqual(got[1]!);
    expect(steps[0]!).toBeLessThan(steps[1]!);
  }
});

test("a draft model that agrees saves two thirds of the time, and one that never agrees costs at most 5 %", async () => {
  const times: number[] = [];
  for (const draft of [undefined, { next: hashNext }, { next: (() => 98) as Next }]) {
    const { engine, ask, time } = withDraft(draft && { draft });
    const { text } = await ask("once upon", { num_predict: 300 });
    expect(text).toBe(expectedText("once upon", 300));
    times.push(time.now);
    await engine.close();
  }
  expect(times[1]! / times[0]!).toBeLessThan(1 / 3);
  expect(times[2]! / times[0]!).toBeLessThan(1.05);
});

test("a draft model draws with the random numbers of the answer, so that drafts are right at a temperature too", async () => {
  const spread = (tokens: readonly number[]): number[] =>
    Array.from({ length: VOCAB }, (_, id) => (id === END ? -20 : ((hashNext(tokens) * 7 + id * 13) % 101) / 12));
  const { engine, session, ask } = withDraft({ logits: spread, draft: {} });
  await ask("once upon", { num_predict: 200, temperature: 1, seed: 11, top_k: 0, top_p: 1 });
  expect(session.runs.length).toBeLessThan(200 / 4);
  await engine.close();
});

test("tokens have the distribution of the model's logits even if many drafts are wrong", async () => {
  const LETTERS = 6;
  const WEIGHTS = [5, 4, 3, 2, 1, 1];
  const DRAFT_WEIGHTS = [1, 4, 1, 2, 5, 3];
  const logitsOf = (weights: readonly number[]) => (tokens: readonly number[]) => {
    const turn = tokens.at(-1)! % LETTERS; // the continuation depends on the previous token
    return Array.from({ length: VOCAB }, (_, id) =>
      id >= 96 && id < 96 + LETTERS ? Math.log(weights[(id + turn) % LETTERS]!) : -Infinity,
    );
  };
  const counts = Array.from({ length: LETTERS }, () => Array<number>(LETTERS).fill(0));
  const { engine, session, ask } = withDraft({
    slots: 1,
    logits: logitsOf(WEIGHTS),
    draft: { logits: logitsOf(DRAFT_WEIGHTS), onRun: () => {} }, // free of cost, so that it continues
  });
  const seeds = makeRng(1);
  const all = Array.from({ length: 24 }, () =>
    ask("`", { num_predict: 150, temperature: 1, seed: seeds.uint32(), top_k: 0, top_p: 1 }),
  );
  for (const { text } of await Promise.all(all)) {
    for (let i = 1; i < text.length; i++) counts[text.charCodeAt(i - 1) % LETTERS]![text.charCodeAt(i) - 96]!++;
  }
  expect(session.inputs.filter(({ drafted }) => drafted).length).toBeGreaterThan(300);
  const sum = WEIGHTS.reduce((a, b) => a + b, 0);
  let chi = 0;
  for (const [turn, row] of counts.entries()) {
    const n = row.reduce((a, b) => a + b, 0);
    for (const [id, count] of row.entries()) {
      const expected = (n * WEIGHTS[(96 + id + turn) % LETTERS]!) / sum;
      chi += (count - expected) ** 2 / expected;
    }
  }
  expect(chi).toBeLessThan(59.7); // 0.999 of draws, of 6 · 5 degrees of freedom
  await engine.close();
});

test("a draft model reads a long prompt in pieces, continues after a shift, and copies a prefix", async () => {
  const { engine, draft, session, ask } = withDraft({ slots: 2, ctxLen: 200, chunk: 512, draft: { next: hashNext } });
  const prompt = "abcdefgh".repeat(20);
  const { text } = await ask(prompt, { num_predict: 300 });
  const plainBench = withDraft({ slots: 2, ctxLen: 200, chunk: 512 });
  expect(text).toBe((await plainBench.ask(prompt, { num_predict: 300 })).text);
  const pieces = draft!.inputs.filter(({ logits }) => logits === "none");
  expect(pieces.length).toBeGreaterThan(1);
  expect(session.runs.length).toBeLessThan(200);
  const before = draft!.inputs.length;
  await Promise.all([ask(`${prompt}1`, { num_predict: 20 }), ask(`${prompt}2`, { num_predict: 20 })]);
  const again = draft!.inputs.slice(before).reduce((sum, { tokens }) => sum + tokens.length, 0);
  expect(again).toBeLessThan(2 * prompt.length); // one of them was copied, or both
  expect(draft!.copies.length).toBeGreaterThan(0);
  await engine.close();
  await plainBench.engine.close();
  expect(draft!.closed).toBe(true);
});

test("draft_num_predict bounds the drafts of a step, and 0 disables the draft model", async () => {
  for (const draft_num_predict of [0, 1, 3]) {
    const { engine, draft, session, ask } = withDraft({ draft: { next: hashNext } });
    const { text } = await ask("once upon", { num_predict: 60, draft_num_predict });
    expect(text).toBe(expectedText("once upon", 60));
    const most = Math.max(...session.inputs.filter(({ start }) => start > 8).map(({ tokens }) => tokens.length));
    expect(most).toBe(draft_num_predict + 1);
    expect(draft!.runs.length > 0).toBe(draft_num_predict > 0);
    await engine.close();
  }
});

test("a draft model that fails is not run again, and answers continue", async () => {
  const { engine, draft, ask } = withDraft({ draft: { next: hashNext } });
  const { run } = draft!;
  let runs = 0;
  draft!.run = (batch) => (++runs > 3 ? Promise.reject(new Error("broken")) : run(batch));
  const { text } = await ask("once upon", { num_predict: 60 });
  expect(text).toBe(expectedText("once upon", 60));
  expect(runs).toBe(4);
  await engine.close();
});

test("an answer continues beyond the context of its draft model", async () => {
  const { engine, ask } = withDraft({ draft: { next: hashNext, ctxLen: 40 } });
  const { text } = await ask("once upon", { num_predict: 100 });
  expect(text).toBe(expectedText("once upon", 100));
  await engine.close();
});
