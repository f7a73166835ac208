/** The engine on a session that continues only from a slot's current position, or from a checkpoint. */
import { expect, test } from "bun:test";
import type { Checkpoint } from "../../../src/engine/program/kept-slots.ts";
import { keepCheckpoint, makeSlots } from "../../../src/engine/batching/slots.ts";
import { expectedText, makeBench, type Bench } from "./fakes.ts";

/** Asks, checks that the answer equals that of a model without cache, and returns the number of reused tokens. */
async function reusedBy({ ask }: Bench, prompt: string, count = 8): Promise<number> {
  const { text, end } = await ask(prompt, { num_predict: count });
  expect(text).toBe(expectedText(prompt, count));
  return end.kind === "done" ? end.statistics.promptCachedCount : -1;
}

const story = "once upon a time there was a small model that kept what it saw";

test("a chat continues where the last answer ended", async () => {
  const bench = makeBench({ recurrent: true, ctxLen: 256 });
  expect(await reusedBy(bench, story)).toBe(0);
  // the last token of an answer was never evaluated
  const next = `${story}${expectedText(story, 8)} and then`;
  expect(await reusedBy(bench, next)).toBe(story.length + 7);
  await bench.engine.close();
});

test("an edited prompt reuses a checkpoint before the edit, and a repeated prompt the one before its end", async () => {
  const bench = makeBench({ recurrent: true, ctxLen: 256, slots: 1, chunk: 64 });
  await reusedBy(bench, story);
  const [edited, tail] = [`${story.slice(0, -4)}heard`, 16];
  expect(await reusedBy(bench, edited)).toBe(story.length - tail);
  expect(await reusedBy(bench, edited)).toBe(story.length - tail); // a run of one token is never split off
  expect(await reusedBy(bench, "something else altogether, nothing of it was here before")).toBe(0);
  await bench.engine.close();
});

test("a prefix in another slot is copied with its checkpoint", async () => {
  const bench = makeBench({ recurrent: true, ctxLen: 256, slots: 2, delayMs: 1 });
  await reusedBy(bench, story);
  const [one, two] = await Promise.all([reusedBy(bench, `${story} one`), reusedBy(bench, `${story} two`)]);
  expect([one, two].sort()).toEqual([story.length, story.length]);
  expect(bench.session.copies).toEqual([story.length]);
  await bench.engine.close();
});

test("a request that is cancelled while its prefix is copied ends", async () => {
  const bench = makeBench({ recurrent: true, ctxLen: 256, slots: 2, delayMs: 1 });
  await reusedBy(bench, story);
  const { copy } = bench.session;
  let isCancelled = false;
  bench.session.copy = (...copied) => {
    isCancelled = true;
    bench.engine.cancel(77);
    copy(...copied);
  };
  const first = reusedBy(bench, `${story} one`);
  void bench.ask(`${story} two`, { num_predict: 100 }, { id: 77 });
  await first;
  await reusedBy(bench, `${story} three`, 20);
  expect(isCancelled).toBe(true);
  expect([bench.engine.active, bench.engine.busySlots]).toEqual([0, 0]);
  await bench.engine.close();
});

test("a full context is shifted, and a later prompt reuses nothing of it", async () => {
  const bench = makeBench({ recurrent: true, ctxLen: 64, slots: 1 });
  const { end } = await bench.ask("a prompt of some length to begin with", { num_predict: 90, num_keep: 4 });
  expect(end).toMatchObject({ kind: "done", reason: "length" });
  expect(await reusedBy(bench, "a prompt of some length to go on with")).toBe(0);
  await bench.engine.close();
});

test("a sequence that fails in a shared run ends alone, and the other one gives the same answer", async () => {
  // the second answer's first token is lost by every run
  const next = (tokens: readonly number[]): number => (tokens[0] === 66 ? 7 : 97 + (tokens.length % 26));
  const bench = makeBench({ recurrent: true, ctxLen: 256, slots: 2, delayMs: 1, next });
  const [good, bad] = await Promise.all([
    bench.ask("AAAA", { num_predict: 30 }),
    bench.ask("BBBB", { num_predict: 30 }),
  ]);
  expect(good.text).toBe(expectedText("AAAA", 30, next));
  expect(bad.end).toMatchObject({ kind: "error", message: "a logit is NaN" });
  await bench.engine.close();
});

test("a slot drops the checkpoints that are nearest to others, and bounds the bytes of all", () => {
  const [slot] = makeSlots(1);
  const at = (length: number, bytes = 1): Checkpoint => ({ length, bytes });
  for (let length = 10; length <= 200; length += 10) keepCheckpoint(slot!, at(length), { slots: 1 });
  const lengths = slot!.checkpoints.map(({ length }) => length);
  expect(lengths).toHaveLength(8);
  expect(lengths.at(-1)).toBe(200);
  keepCheckpoint(slot!, at(55), { slots: 1 });
  expect(slot!.checkpoints.at(-1)?.length).toBe(55);
  keepCheckpoint(slot!, at(300, 2 ** 28), { slots: 1 });
  expect(slot!.checkpoints).toHaveLength(2);
  keepCheckpoint(slot!, at(400, 2 ** 30), { slots: 1 });
  expect(slot!.checkpoints).toEqual([]);
});
