import { expect, test } from "bun:test";
import { systemLoop } from "../../../src/engine/batching/event-loop.ts";
import { END, expectedText, hashNext, makeBench, type FakeSession } from "./fakes.ts";

const LONG = "once upon a time there was a small red fox";

test("a sequence is prefilled in chunks and decoded to its limit", async () => {
  const { engine, session, ask } = makeBench({ chunk: 16 });
  const { text, end } = await ask(LONG);
  expect(text).toBe(expectedText(LONG, 8));
  const statistics = { promptEvalCount: 42, promptCachedCount: 0, evalCount: 8 };
  expect(end).toMatchObject({ kind: "done", reason: "length", statistics });
  expect(session.runs.slice(0, 4).map((run) => run[0]!.count)).toEqual([16, 16, 10, 1]);
  await engine.close();
  expect(session.closed).toBe(true);
});

test("the progress of a prompt is reported at its beginning and after each chunk, if it is requested", async () => {
  const { engine, ask } = makeBench({ chunk: 16 });
  expect((await ask(LONG.slice(0, 20))).progress).toEqual([]);
  const { progress, prompt, end } = await ask(LONG, {}, { reportsProgress: true });
  const cached = prompt!.cached;
  expect(cached).toBeGreaterThan(0);
  expect(progress.map(({ tokens, processed, ...more }) => [tokens, more.cached, processed])).toEqual([
    [42, cached, cached],
    [42, cached, cached + 16],
    [42, cached, 42],
  ]);
  const times = progress.map(({ evalNs }) => evalNs);
  expect([times[0], times.toSorted((a, b) => a - b), prompt!.evalNs]).toEqual([0, times, times.at(-1)!]);
  expect(end).toMatchObject({ statistics: { promptEvalNs: prompt!.evalNs } });
  await engine.close();
});

test("no prompt of several tokens ends in a chunk of one token", async () => {
  for (const [length, chunks] of [
    [33, [16, 15, 2]],
    [17, [15, 2]],
    [18, [16, 2]],
    [32, [16, 16]],
    [2, [2]],
    [1, [1]],
  ] as const) {
    const { engine, session, ask } = makeBench({ chunk: 16 });
    const prompt = LONG.slice(0, length);
    expect((await ask(prompt)).text).toBe(expectedText(prompt, 8));
    expect(session.runs.slice(0, chunks.length).map((run) => run[0]!.count)).toEqual([...chunks]);
    expect(session.runs.slice(0, chunks.length).reduce((sum, run) => sum + run[0]!.count, 0)).toBe(length);
    await engine.close();
  }
});

async function untilItDecodes({ runs }: FakeSession): Promise<void> {
  while (!runs.some((run) => run.length === 1 && run[0]?.count === 1)) await Bun.sleep(1);
}

test("sequences that run at once share decode steps and do not change each other's text", async () => {
  const { engine, session, ask } = makeBench({ slots: 4 });
  const prompts = ["the cat", "a much longer prompt than the others", "x", "fox and hen"];
  const answers = await Promise.all(prompts.map((prompt) => ask(prompt, { num_predict: 20 })));
  expect(answers.map((answer) => answer.text)).toEqual(prompts.map((prompt) => expectedText(prompt, 20)));
  expect(Math.max(...session.runs.map((run) => run.length))).toBe(4);
  await engine.close();
});

test("a decode step runs between two chunks of another prompt, and these chunks are smaller", async () => {
  const { engine, session, ask } = makeBench({ chunk: 16, delayMs: 1 });
  const first = ask("hello", { num_predict: 30 });
  await untilItDecodes(session);
  const second = ask(LONG, { num_predict: 2 });
  await Promise.all([first, second]);
  const counts = session.runs.map((run) => Math.max(...run.map((rows) => rows.count)));
  const chunks = counts.flatMap((count, i) => (count > 1 && i > 1 ? [i] : []));
  expect(chunks.every((at, i) => i === 0 || at - chunks[i - 1]! >= 2)).toBe(true);
  expect(Math.max(...chunks.map((at) => counts[at]!))).toBe(4);
  await engine.close();
});

test("short prompts pass a long one up to its number of tokens, and equal prompts keep their order", async () => {
  const { engine, ask } = makeBench({ slots: 3, ctxLen: 200, chunk: 16, prefixBytes: 0 });
  const ended: string[] = [];
  const submit = async (letter: string, length: number): Promise<void> => {
    await ask(letter.repeat(length), { num_predict: 1 });
    ended.push(letter);
  };
  const long = Promise.all([submit("L", 160), submit("M", 160)]);
  while (!ended.includes("L") && ended.length < 50) await submit(String.fromCharCode(97 + (ended.length % 26)), 20);
  await long;
  const passed = ended.indexOf("L");
  expect(passed).toBeGreaterThan(3);
  expect(passed).toBeLessThan(160 / 20 + 2);
  expect(ended.indexOf("M")).toBeGreaterThan(passed);
  await engine.close();
});

test("the longest shared prefix is reused, up to the last two prompt tokens", async () => {
  const { engine, session, ask } = makeBench({ slots: 1 });
  await ask(LONG);
  session.runs.length = 0;
  const again = await ask(LONG);
  expect(again.text).toBe(expectedText(LONG, 8));
  expect(again.end).toMatchObject({ statistics: { promptEvalCount: 42, promptCachedCount: 40 } });
  expect(again.prompt).toMatchObject({ tokens: 42, cached: 40 });
  expect(session.runs[0]).toEqual([{ slot: 0, start: 40, count: 2 }]);
  session.runs.length = 0;
  const other = `${LONG.slice(0, 20)}!!`;
  expect((await ask(other)).text).toBe(expectedText(other, 8));
  expect(session.runs[0]![0]).toMatchObject({ start: 20 });
  await engine.close();
});

test("a prefix held by another slot is copied instead of computed", async () => {
  const { engine, session, ask } = makeBench({ slots: 2, delayMs: 10 });
  const first = ask(LONG, { num_predict: 20 });
  await untilItDecodes(session);
  const second = await ask(`${LONG}!`);
  expect(second.text).toBe(expectedText(`${LONG}!`, 8));
  expect(second.end).toMatchObject({ statistics: { promptEvalCount: 43, promptCachedCount: 41 } });
  expect((await first).text).toBe(expectedText(LONG, 20));
  expect(session.copies).toEqual([41]);
  await engine.close();
});

test("a full context drops its middle and continues, and no token that a shift moved is reused", async () => {
  const { engine, session, ask } = makeBench({ slots: 1, ctxLen: 32 });
  const { text, end } = await ask("0123456789", { num_predict: 60, num_keep: 4 });
  expect(text.length).toBe(60);
  expect(text.slice(0, 22)).toBe(expectedText("0123456789", 22));
  expect(end).toMatchObject({ reason: "length" });
  session.runs.length = 0;
  expect((await ask("0123456789")).text).toBe(expectedText("0123456789", 8));
  expect(session.runs[0]![0]).toMatchObject({ start: 4 });
  await engine.close();
});

test("tokens that moved in a shift are not reused for a new prompt with the same tokens", async () => {
  const { engine, session, ask } = makeBench({ slots: 1, ctxLen: 32 });
  const { text } = await ask("0123456789", { num_predict: 30, num_keep: 4 });
  const moved = `0123${`0123456789${text}`.slice(18, 30)}`; // the slot's content after its one shift
  session.runs.length = 0;
  expect((await ask(moved)).text).toBe(expectedText(moved, 8));
  expect(session.runs[0]![0]).toMatchObject({ start: 4 });
  session.runs.length = 0;
  expect((await ask(moved)).text).toBe(expectedText(moved, 8)); // this one had no shift
  expect(session.runs[0]![0]).toMatchObject({ start: 14 });
  await ask("0123456789", { num_predict: 30, num_keep: 4 });
  session.runs.length = 0;
  const later = `0123${text.slice(22)}`; // tokens evaluated after the shift
  expect((await ask(later)).text).toBe(expectedText(later, 8));
  expect(session.runs[0]![0]).toMatchObject({ start: 4 });
  await engine.close();
});

test("without shifting, a full context ends the answer with the reason length", async () => {
  const { engine, ask } = makeBench({ slots: 1, ctxLen: 32 });
  const { text, end } = await ask("0123456789", { num_predict: -1 }, { shift: false });
  expect(text).toBe(expectedText("0123456789", 23));
  expect(end).toMatchObject({ reason: "length" });
  expect((await ask("9876543210", { num_predict: -2 })).end).toMatchObject({ reason: "length" });
  await engine.close();
});

test("an answer of a model that cannot shift ends when the context is full, even if the request allows shifts", async () => {
  const { engine, ask } = makeBench({ slots: 1, ctxLen: 32, fixedContext: true });
  const { text, end } = await ask("0123456789", { num_predict: -1 }, { shift: true });
  expect(text).toBe(expectedText("0123456789", 23));
  expect(end).toMatchObject({ reason: "length" });
  await engine.close();
});

test("a prompt longer than the context keeps its start and its end", async () => {
  const { engine, session, ask } = makeBench({ slots: 1, ctxLen: 32 });
  const { end } = await ask(LONG, { num_keep: 4 });
  expect(end).toMatchObject({ reason: "length", statistics: { promptEvalCount: 24 } }); // 8 of the 32 for the answer
  if (end.kind === "done") expect(end.tokens.length).toBe(24 + 8); // the conversation as the model saw it
  expect(session.runs.slice(0, 2).reduce((sum, [run]) => sum + run!.count, 0)).toBe(24);
  const refused = await ask(LONG, {}, { shift: false });
  expect(refused.end).toMatchObject({ kind: "error", code: "bad_request" });
  await engine.close();
});

test("the end token stops the answer and is not part of the text", async () => {
  const { engine, ask } = makeBench({ next: (tokens) => (tokens.length >= 9 ? END : hashNext(tokens)) });
  const { text, end } = await ask("abcd");
  expect(text).toBe(expectedText("abcd", 5));
  expect(end).toMatchObject({ reason: "stop", statistics: { evalCount: 6 } });
  await engine.close();
});

test("a stop string is never part of the text", async () => {
  const { engine, ask } = makeBench();
  const whole = expectedText("stop here", 8);
  const { text, end } = await ask("stop here", { stop: [whole.slice(3, 6)] });
  expect(text).toBe(whole.slice(0, 3));
  expect(end).toMatchObject({ reason: "stop" });
  await engine.close();
});

test("a cancelled sequence frees its slot before the next step", async () => {
  const { engine, session, ask } = makeBench({ slots: 1, delayMs: 5 });
  void ask("long one", { num_predict: 1000 }, { id: 77 });
  await untilItDecodes(session);
  engine.cancel(77);
  const runs = session.runs.length;
  expect((await ask("next")).text).toBe(expectedText("next", 8)); // in the only slot
  expect(session.runs.slice(runs).findIndex(([rows]) => rows?.start === 0)).toBeWithin(0, 2);
  expect([engine.active, engine.busySlots]).toEqual([0, 0]);
  await engine.close();
});

test("a run that fails ends its sequences with an error and leaves the engine usable", async () => {
  let broken = true;
  const next = (tokens: readonly number[]): number => {
    if (broken) throw new Error("device lost");
    return hashNext(tokens);
  };
  const { engine, session, ask } = makeBench({ next });
  expect((await ask(LONG)).end).toMatchObject({ kind: "error", message: "device lost" });
  broken = false;
  session.runs.length = 0;
  expect((await ask(LONG)).text).toBe(expectedText(LONG, 8));
  expect(session.runs[0]![0]).toMatchObject({ start: 0 }); // nothing of a failed run is reused
  expect(engine.busySlots).toBe(0);
  await engine.close();
});

test("a sequence that breaks a shared run fails alone", async () => {
  const next = (tokens: readonly number[]): number => {
    if (tokens[0] === 98 && tokens.length > 8) throw new Error("not a number"); // starts with b
    return hashNext(tokens);
  };
  const { engine, ask } = makeBench({ slots: 3, next });
  const [good, bad, other] = await Promise.all(["apple", "bread", "cheese"].map((each) => ask(each)));
  expect(bad!.end).toMatchObject({ kind: "error", message: "not a number" });
  expect([good!.text, other!.text]).toEqual([expectedText("apple", 8), expectedText("cheese", 8)]);
  expect(engine.busySlots).toBe(0);
  await engine.close();
});

test("num_predict 0 evaluates the prompt and generates no token", async () => {
  const { engine, ask } = makeBench();
  expect(await ask("hello", { num_predict: 0 })).toMatchObject({ text: "", end: { statistics: { evalCount: 0 } } });
  await engine.close();
});

test("requests beyond the number of slots wait and are answered", async () => {
  const { engine, ask } = makeBench({ slots: 2 });
  const prompts = Array.from({ length: 9 }, (_, i) => `prompt number ${i}`);
  const answers = await Promise.all(prompts.map((prompt) => ask(prompt)));
  expect(answers.map((answer) => answer.text)).toEqual(prompts.map((prompt) => expectedText(prompt, 8)));
  await engine.close();
});

test("log-probabilities are reported for every token of an answer, and only if they are requested", async () => {
  const { engine, ask } = makeBench();
  const { text, pieces } = await ask(LONG, { temperature: 1, seed: 3, top_k: 1 }, { logprobs: 3 });
  const reported = pieces.flatMap(({ logprobs = [] }) => logprobs);
  expect(reported.map(({ token }) => token).join("")).toBe(text);
  const expected = 10 - Math.log(Math.exp(10) + 256); // one logit of 10 among 257 of 0
  for (const { logprob, top, token } of reported) {
    expect(logprob).toBeCloseTo(expected, 5);
    expect(top).toHaveLength(3);
    expect(top[0]).toMatchObject({ token });
  }
  expect((await ask(LONG)).pieces.some(({ logprobs }) => logprobs)).toBe(false);
  await engine.close();
});

test("log-probabilities are those before penalties and temperature", async () => {
  const { engine, ask } = makeBench({ next: () => 97 });
  const { text, pieces } = await ask("aaaa", { temperature: 0, presence_penalty: 20, num_predict: 2 }, { logprobs: 1 });
  expect(text).not.toContain("a");
  const [first] = pieces[0]!.logprobs!;
  expect(first!.top[0]!.token).toBe("a");
  expect(first!.logprob).toBeCloseTo(-Math.log(Math.exp(10) + 256), 5);
  await engine.close();
});

test("an answer that a stop string ended names that string", async () => {
  const { engine, ask } = makeBench({ next: (tokens) => "hello END".charCodeAt(tokens.length - 3) });
  const { text, end } = await ask("abc", { num_predict: 20, stop: ["other", "END"] });
  expect([text, end]).toMatchObject(["hello ", { kind: "done", reason: "stop", stopSequence: "END" }]);
  expect((await ask("abc", { num_predict: 2 })).end).not.toHaveProperty("stopSequence");
  await engine.close();
});

test("the ids at the end of an answer exclude its stop string", async () => {
  const idsOf = (text: string): number[] => [...new TextEncoder().encode(text)];
  const { engine, ask } = makeBench({ next: (tokens) => "hello END".charCodeAt(tokens.length - 3) });
  const { end } = await ask("abc", { num_predict: 20, stop: ["lo E"] });
  expect(end).toMatchObject({ tokens: Int32Array.from(idsOf("abchel")) });
  await engine.close();
});

test("a prompt longer than the context is refused if truncate is false", async () => {
  const { engine, ask } = makeBench({ slots: 1, ctxLen: 32 });
  const { end } = await ask("x".repeat(32), {}, { truncate: false });
  expect(end).toMatchObject({ kind: "error", code: "bad_request" });
  expect((end as { message: string }).message).toMatch(/^the prompt is longer than the context length .*32 tokens.*31/);
  expect((await ask("x".repeat(31), {}, { truncate: false })).end).toMatchObject({ kind: "done" });
  await engine.close();
});

test("an answer reports whether part of its prompt was cut or dropped", async () => {
  const { engine, ask } = makeBench({ slots: 1, ctxLen: 32 });
  expect((await ask("x".repeat(40))).end).toMatchObject({ kind: "done", truncated: true });
  expect((await ask("0123456789", { num_predict: 8 })).end).not.toHaveProperty("truncated");
  expect((await ask("0123456789", { num_predict: 60 })).end).toMatchObject({ truncated: true });
  const kept = await ask("0123456789", { num_predict: 60, num_keep: -1 });
  expect(kept.end).not.toHaveProperty("truncated"); // the shift dropped nothing but the answer's own beginning
  await engine.close();
});

test("the engine waits for a turn of its event loop after every step", async () => {
  const system = systemLoop();
  let turns = 0;
  const loop = { ...system, nextTurn: () => (turns++, system.nextTurn()) };
  const { engine, session, ask } = makeBench({ loop });
  await ask("hello", { num_predict: 12 });
  await engine.close();
  expect(turns).toBe(session.runs.length);
});

test("a grammar is released when its request ends, even if the request is refused after the grammar was made", async () => {
  const open = new Set<number>();
  let made = 0;
  const matcher = async () => {
    const own = made++;
    open.add(own);
    const mask = async () => undefined;
    return { mask, accept: () => true, isOver: async () => false, dispose: () => void open.delete(own) };
  };
  const { engine, ask } = makeBench({
    ctxLen: 32,
    grammars: async () => ({ matcher, begin: matcher, prepare() {}, dispose() {} }),
  });
  const format = "json";
  expect((await ask("hello", {}, { format })).end).toMatchObject({ kind: "done" });
  const unknown = await ask("hello", { logit_bias: { "999": 1 } }, { format });
  expect(unknown.end).toMatchObject({ kind: "error", code: "bad_request" });
  const none = await ask("", {}, { format });
  expect(none.end).toMatchObject({ kind: "error", code: "bad_request" });
  const long = await ask(LONG, {}, { format, truncate: false });
  expect(long.end).toMatchObject({ kind: "error", code: "bad_request" });
  expect([made, open.size]).toEqual([4, 0]);
  await engine.close();
});
