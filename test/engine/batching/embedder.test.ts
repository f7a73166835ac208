import { expect, test } from "bun:test";
import type { StateRows } from "../../../src/engine/program/backend.ts";
import { AppError } from "../../../src/base/errors.ts";
import { EmbedQueue, type EmbedText } from "../../../src/engine/batching/embed-queue.ts";
import { Embedder, type EmbedEvent } from "../../../src/engine/batching/embedder.ts";
import { expectedText, makeBench, makeFakeSession, hashNext, stateOf } from "./fakes.ts";

const LONG = "once upon a time there was a small red fox";
const ids = (text: string): Int32Array => Int32Array.from(new TextEncoder().encode(text));
const unit = (text: string): number[] => stateOf([...ids(text)]).map(Math.fround);

/** Vectors of request 7, by the place of their text. */
function vectorsOf(events: readonly EmbedEvent[]): Map<number, number[]> {
  const found = new Map<number, number[]>();
  for (const event of events) {
    if (event.kind === "embedded") found.set(event.indexes[0]!, [...event.vectors]);
  }
  return found;
}

async function until(check: () => boolean): Promise<void> {
  while (!check()) await new Promise((resolve) => setImmediate(resolve));
}

test("texts are evaluated one after the other in a slot, in chunks, and free the slot", async () => {
  const { engine, session, embedded } = makeBench({ chunk: 16 });
  engine.embed({ id: 7, texts: [ids(LONG), ids("short")] });
  await until(() => embedded.length === 2);
  expect(session.runs.map((run) => run[0]!.count)).toEqual([16, 16, 10, 5]);
  const vectors = vectorsOf(embedded);
  expect(vectors.get(0)).toEqual(unit(LONG));
  expect(vectors.get(1)).toEqual(unit("short"));
  expect(embedded.map((event) => event.kind === "embedded" && event.tokens)).toEqual([42, 5]);
  expect(engine.busySlots).toBe(0);
  await engine.close();
});

test("texts and answers take turns on the only slot, and neither changes the other", async () => {
  const { engine, embedded, ask } = makeBench({ slots: 1 });
  const embeddedBefore: number[] = [];
  const answers = ["the cat", "x", "fox"].map(async (prompt) => {
    const answer = await ask(prompt);
    embeddedBefore.push(embedded.length);
    return answer;
  });
  engine.embed({ id: 7, texts: [ids("a"), ids(LONG), ids("b")] });
  expect((await Promise.all(answers)).map(({ text }) => text)).toEqual(
    ["the cat", "x", "fox"].map((prompt) => expectedText(prompt, 8)),
  );
  await until(() => embedded.length === 3);
  expect(embeddedBefore).toEqual([0, 1, 2]);
  expect([...vectorsOf(embedded).values()]).toEqual([unit("a"), unit(LONG), unit("b")]);
  await engine.close();
});

test("chunks of a text run between decode steps, and are smaller there", async () => {
  const { engine, session, embedded, ask } = makeBench({ slots: 2, chunk: 16 });
  const answer = ask("hello", { num_predict: 40 });
  await until(() => session.runs.length > 2);
  engine.embed({ id: 7, texts: [ids(LONG)] });
  expect((await answer).text).toBe(expectedText("hello", 40));
  await until(() => embedded.length === 1);
  const own = session.runs.flatMap((run, at) => (run[0]!.slot === 1 ? [at] : []));
  expect(own.length).toBe(11); // 42 tokens, 4 at a time
  expect(own.every((at, i) => i === 0 || at - own[i - 1]! === 2)).toBe(true);
  await engine.close();
});

test("a cancelled request sends no more events and frees its slot", async () => {
  const { engine, session, embedded } = makeBench({ chunk: 4, delayMs: 1 });
  engine.embed({ id: 7, texts: [ids(LONG), ids(LONG)] });
  await until(() => session.runs.length === 2);
  engine.cancel(7);
  await until(() => engine.busySlots === 0);
  const runs = session.runs.length;
  engine.embed({ id: 8, texts: [ids("a")] });
  await until(() => embedded.length > 0);
  expect(embedded.map((event) => event.id)).toEqual([8]);
  expect(session.runs.length).toBeLessThanOrEqual(runs + 2);
  await engine.close();
});

/** An encoder whose states are the counts of tokens; it refuses texts with the token 13. */
function makeEncoder() {
  const runs: (readonly StateRows[])[] = [];
  const events: EmbedEvent[] = [];
  const session = makeFakeSession({ slots: 1, ctxLen: 64, next: hashNext });
  session.states = async (batch) => {
    runs.push(batch);
    if (batch.some(({ tokens }) => tokens.includes(13))) throw new AppError("runner", "unlucky");
    return Float32Array.from(batch.flatMap(({ tokens }) => [...tokens].flatMap(() => [tokens.length, 0])));
  };
  const emit = (event: EmbedEvent): void => void events.push(event);
  return { embedder: new Embedder({ session, pooling: "mean", dim: 2, encoder: true, emit }), runs, events };
}

test("an encoder runs texts of several requests at once", async () => {
  const { embedder, runs, events } = makeEncoder();
  embedder.submit({ id: 1, texts: [new Int32Array(5), new Int32Array(6)] });
  embedder.submit({ id: 2, texts: [new Int32Array(6)] });
  while (embedder.ready) await embedder.step(512);
  expect(runs.map((run) => run.length)).toEqual([3]);
  expect(events.map((event) => event.kind === "embedded" && [event.id, event.tokens, event.vectors.length])).toEqual([
    [1, 11, 4],
    [2, 6, 2],
  ]);
});

test("a text that the model fails on fails its own request only", async () => {
  const { embedder, events } = makeEncoder();
  embedder.submit({ id: 1, texts: [new Int32Array(5)] });
  embedder.submit({ id: 2, texts: [Int32Array.of(1, 13, 2, 3, 4)] });
  while (embedder.ready) await embedder.step(512);
  expect(events.map(({ kind, id }) => [kind, id])).toEqual([
    ["embedded", 1],
    ["embedFailed", 2],
  ]);
});

/** Removes everything from a queue. */
function drain(queue: EmbedQueue, limits: { tokensMax: number; textsMax: number }): EmbedText[][] {
  const groups: EmbedText[][] = [];
  while (queue.size > 0) groups.push(queue.take(limits));
  return groups;
}

test("every text is taken once, in runs within the limits and with little padding", () => {
  const queue = new EmbedQueue();
  const lengths = Array.from({ length: 300 }, (_, i) => 3 + ((i * 7919) % 60));
  queue.add({ id: 1, texts: lengths.map((length) => new Int32Array(length)) });
  queue.add({ id: 2, texts: [new Int32Array(2000), new Int32Array(8)] });
  const groups = drain(queue, { tokensMax: 1024, textsMax: 1024 });
  const taken = groups.flat().map(({ id, index }) => `${id} ${index}`);
  expect(new Set(taken).size).toBe(302);
  expect(taken.length).toBe(302);
  for (const group of groups) {
    const padded = group.length * Math.max(...group.map(({ tokens }) => tokens.length));
    const filling = 1 - group.reduce((sum, { tokens }) => sum + tokens.length, 0) / padded;
    expect(padded <= 1024 || group.length === 1).toBe(true);
    expect(filling).toBeLessThanOrEqual(0.35);
  }
  expect(groups.length).toBeLessThan(25);
});

test("a request of one text does not wait for the end of a request of many", () => {
  const queue = new EmbedQueue();
  queue.add({ id: 1, texts: Array.from({ length: 400 }, () => new Int32Array(50)) });
  queue.add({ id: 2, texts: [new Int32Array(3)] });
  const groups = drain(queue, { tokensMax: 500, textsMax: 1024 });
  expect(groups.findIndex((group) => group.some(({ id }) => id === 2))).toBeLessThanOrEqual(1);
});
