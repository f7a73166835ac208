/** Log-probabilities of a prompt's tokens: the same numbers however the prompt is divided, cached or interrupted. */
import { expect, test } from "bun:test";
import { makePromptScores } from "../../../src/engine/batching/prompt-logprobs.ts";
import type { SequenceRequest } from "../../../src/engine/batching/sequence.ts";
import { byteTokenizer, END, hashNext, makeBench, VOCAB, type Answer } from "./fakes.ts";

const PROMPT = "once upon a time there was a small red fox";

/** Logits that depend on every token before: three peaks, the rest even. */
function spread(tokens: readonly number[]): Float32Array {
  const logits = new Float32Array(VOCAB).fill(-1);
  const first = hashNext(tokens);
  for (const [i, logit] of [6, 4, 2].entries()) logits[97 + ((first - 97 + 7 * i) % 26)] = logit;
  return logits;
}

/** Written with the plainest sums. */
function expected(prompt: string, top: number) {
  const ids = [...new TextEncoder().encode(prompt)];
  return ids.map((id, at) => {
    const token = String.fromCharCode(id);
    if (at === 0) return { id, token, bytes: [id], top: [] };
    const logits = [...spread(ids.slice(0, at))];
    const sum = Math.log(logits.reduce((all, each) => all + Math.exp(each), 0));
    const described = logits.map((logit, other) => ({ id: other, logprob: expect.closeTo(logit - sum, 9), logit }));
    const best = described.toSorted((a, b) => b.logit - a.logit || a.id - b.id).slice(0, top);
    return {
      id,
      token,
      bytes: [id],
      logprob: described[id]!.logprob,
      rank: 1 + logits.filter((logit) => logit > logits[id]!).length,
      top: best.map((each) => ({
        id: each.id,
        logprob: each.logprob,
        bytes: [each.id],
        token: new TextDecoder().decode(Uint8Array.of(each.id)),
      })),
    };
  });
}

const WANTED = { promptLogprobs: 3 } as const;

const measured = (more: Partial<SequenceRequest> = {}): Partial<SequenceRequest> => ({ ...WANTED, ...more });

test("all tokens are described, whatever the chunks, also without an answer", async () => {
  for (const chunk of [2, 7, 16, 100]) {
    const { engine, ask } = makeBench({ chunk, logits: spread });
    const plain = await ask(PROMPT);
    const answer = await ask(PROMPT, {}, measured());
    expect(answer.described).toEqual(expected(PROMPT, 3));
    expect(answer.text).toBe(plain.text);
    const none = await ask(PROMPT, { num_predict: 0 }, measured({ promptLogprobs: 0 }));
    expect(none.described).toEqual(expected(PROMPT, 0));
    expect([none.text, none.end]).toMatchObject(["", { kind: "done", reason: "length" }]);
    expect((await ask("x", { num_predict: 0 }, measured())).described).toEqual(expected("x", 3));
    await engine.close();
  }
});

test("a cached prefix is evaluated again, and the next request takes it from the cache", async () => {
  for (const recurrent of [false, true]) {
    const { engine, ask } = makeBench({ recurrent, blocks: true, logits: spread });
    await ask(PROMPT);
    const again = await ask(PROMPT, {}, measured());
    expect(again.described).toEqual(expected(PROMPT, 3));
    expect(again.prompt!.cached).toBe(0);
    expect((await ask(`${PROMPT}es`)).prompt!.cached).toBeGreaterThan(20);
    await engine.close();
  }
});

test("other sequences decode between the chunks and between their parts, and nothing changes", async () => {
  const parts = { partsOf: () => 3, chunkShared: 8 };
  for (const more of [{}, parts]) {
    const { engine, session, ask } = makeBench({ slots: 3, chunk: 16, delayMs: 1, logits: spread, ...more });
    const first = ask("hello", { num_predict: 40 });
    while (!session.runs.some((run) => run[0]?.count === 1)) await Bun.sleep(1);
    const [a, b] = await Promise.all([ask(PROMPT, {}, measured()), ask("a second text", {}, measured())]);
    expect([a.described, b.described]).toEqual([expected(PROMPT, 3), expected("a second text", 3)]);
    await first;
    const counts = session.inputs.flatMap(({ logits, tokens }) => (logits === "all" ? [tokens.length] : []));
    expect(Math.max(...counts)).toBeLessThanOrEqual(8);
    const steps = session.runs.map((run) => Math.max(...run.map(({ count }) => count)) === 1);
    expect(steps.slice(steps.indexOf(false, 2)).filter(Boolean).length).toBeGreaterThan(3);
    await engine.close();
  }
});

test("a prompt that loses its slot in the middle is described once", async () => {
  const room = { slots: 2, ctxLen: 1024, growth: true, kvBytes: 640, chunk: 100, chunkShared: 2, delayMs: 1 };
  const { engine, session, ask } = makeBench({ ...room, logits: spread });
  const first = ask("a".repeat(100), { num_predict: 200 });
  while (!session.runs.some((run) => run[0]?.count === 1)) await Bun.sleep(1);
  const long = PROMPT.repeat(9).slice(0, 350);
  const answer = await ask(long, { num_predict: 3 }, measured());
  expect(answer.described).toEqual(expected(long, 3));
  const begun = session.inputs.filter(({ start, logits }) => start === 0 && logits !== "last");
  expect(begun.map(({ logits }) => logits)).toEqual(["all", "none"]); // its own, twice
  await first;
  await engine.close();
});

test("a cancelled request is described no further", async () => {
  const { engine, session, ask } = makeBench({ chunk: 4, delayMs: 2, logits: spread });
  void ask(PROMPT, {}, measured({ id: 77 }));
  while (session.runs.length < 2) await Bun.sleep(1);
  engine.cancel(77);
  const described = (): number => session.inputs.filter(({ logits }) => logits === "all").length;
  const before = described();
  await ask("hello");
  expect(described() - before).toBeLessThanOrEqual(1);
  await engine.close();
});

test("a prompt beyond the context is refused, although others are cut", async () => {
  const { engine, ask } = makeBench({ ctxLen: 32, logits: spread });
  expect((await ask(PROMPT)).end).toMatchObject({ kind: "done", truncated: true });
  const { end } = await ask(PROMPT, {}, measured());
  expect(end).toMatchObject({ kind: "error", code: "bad_request", message: expect.stringContaining("42 tokens") });
  await engine.close();
});

test("a prompt that an encoder has read is refused", async () => {
  const { engine, ask } = makeBench();
  const read = { ids: Int32Array.of(1, 2), evalNs: 1 };
  expect((await ask("x", {}, { read })).end).toMatchObject({ kind: "done" });
  const { end } = await ask("x", {}, measured({ read }));
  expect(end).toMatchObject({ code: "bad_request", message: expect.stringContaining("does not support logprobs") });
  await engine.close();
});

test("the logits of one run stay below 64 MiB, whatever the vocabulary", () => {
  for (const vocabSize of [32_000, 151_936, 262_144, 2 ** 21]) {
    const { rowsMax } = makePromptScores({ prompt: Int32Array.of(1), count: 1, vocabSize, tokenizer: byteTokenizer });
    expect(rowsMax).toBeGreaterThanOrEqual(2);
    expect(4 * vocabSize * rowsMax).toBeLessThanOrEqual(64 * 2 ** 20);
    expect(4 * vocabSize * (rowsMax + 1)).toBeGreaterThan(64 * 2 ** 20);
  }
});

test("the tokens that end an answer have log-probabilities if requested", async () => {
  const tokensOf = ({ pieces }: Answer): string[] =>
    pieces.flatMap(({ logprobs = [] }) => logprobs.map(({ token }) => token));
  const ended = makeBench({ next: (tokens) => (tokens.length > 6 ? END : 98) });
  expect(tokensOf(await ended.ask("abcd", {}, { logprobs: 0 }))).toEqual(["b", "b", "b"]);
  const all = await ended.ask("abcd", {}, { logprobs: 0, endLogprobs: true });
  expect([all.text, tokensOf(all)]).toEqual(["bbb", ["b", "b", "b", ""]]);
  await ended.engine.close();

  const stopped = makeBench({ next: (tokens) => 97 + (tokens.length % 26) });
  const sampling = { stop: ["ghi"] };
  expect(tokensOf(await stopped.ask("abcd", sampling, { logprobs: 0 }))).toEqual(["e", "f"]);
  const whole = await stopped.ask("abcd", sampling, { logprobs: 0, endLogprobs: true });
  expect([whole.text, tokensOf(whole)]).toEqual(["ef", ["e", "f", "g", "h", "i"]]);
  await stopped.engine.close();
});

test("rows whose tokens are described are not needed again, and are skipped if they come", () => {
  const prompt = byteTokenizer.encode("once upon", { addSpecial: false, parseSpecial: false });
  const rows = Array.from(prompt, (_, i) => spread(Array.from(prompt.slice(0, i + 1))));
  const scores = makePromptScores({ prompt, count: 3, vocabSize: VOCAB, tokenizer: byteTokenizer });
  expect(scores.rowsDone).toBe(0);
  scores.take(0, rows.slice(0, 4));
  expect(scores.drain()).toEqual(expected("once upon", 3).slice(0, 5));
  expect(scores.rowsDone).toBe(4);
  scores.take(2, rows.slice(2));
  expect(scores.drain()).toEqual(expected("once upon", 3).slice(5));
  expect(scores.rowsDone).toBe(Infinity);
  scores.take(0, rows);
  expect(scores.drain()).toEqual([]);
});
