import { expect, test } from "bun:test";
import { postgresUrl } from "../../../../stores.ts";
import { agent, wake } from "../deliveries/fixtures.ts";
import { eventually } from "../../../../e2e/hearth.ts";
import { ended, gate, makeWorkerBench, send } from "./parts.ts";
import { execute } from "../../../../../src/gateway/database/store.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

test("runs of one session run one at a time in order, also after a retry", async () => {
  await using at = makeWorkerBench();
  const model = gate(at);
  const same = { sessionKey: "hook:order" };
  const [a, b, c] = [
    await send(at, agent("a", same)),
    await send(at, agent("b", same)),
    await send(at, agent("c", same)),
  ];
  const other = await send(at, agent("other"));
  await model.begins(other);
  expect(model.begun()).toEqual([a, other]);
  model.open(a, ended({ status: "error", isTemporary: true }));
  await at.until(a, (status) => status.state === "queued" && status.attempts === 1);
  model.open(other);
  await at.settled(other);
  expect(model.begun()).toEqual([a, other]); // b waits for a
  at.bench.clock.now += MINUTE_MS;
  at.worker.poke();
  await model.begins(a);
  for (const runId of [a, b, c]) {
    await model.begins(runId);
    model.open(runId);
    await at.settled(runId);
  }
  expect(model.begun()).toEqual([a, other, a, b, c]);
});

test("a mapping with many runs does not delay another", async () => {
  await using at = makeWorkerBench();
  at.settings.maxConcurrent = 2;
  const model = gate(at);
  const noisy: string[] = [];
  for (let i = 0; i < 20; i++) noisy.push(await send(at, agent(`${i}`), { mappingId: "noisy" }));
  await model.begins(noisy[1]!); // nothing else was due
  const quiet = await send(at, agent("q"), { mappingId: "quiet" });
  expect(model.begun()).toEqual(noisy.slice(0, 2));
  model.open(noisy[0]!);
  await model.begins(quiet);
  expect(model.begun()).toEqual([...noisy.slice(0, 2), quiet]);
});

test("maxConcurrent limits the running turns of a mapping", async () => {
  await using at = makeWorkerBench();
  at.settings.maxConcurrentOf = (mappingId) => (mappingId === "one" ? 1 : undefined);
  const model = gate(at);
  const first = await send(at, agent("1"), { mappingId: "one" });
  const second = await send(at, agent("2"), { mappingId: "one" });
  const other = await send(at, agent("3"));
  await model.begins(other);
  expect(model.begun()).toEqual([first, other]);
  model.open(first);
  await model.begins(second);
});

test("events without room wait in order, and are posted when there is room", async () => {
  await using at = makeWorkerBench();
  at.parts.eventsMax = 1;
  const first = await send(at, wake("one"));
  await at.settled(first);
  const second = await send(at, wake("two"));
  const summary = await send(at, agent("x", { name: "CI", deliver: true }));
  await at.until(summary, (status) => status.answer !== null);
  expect((await at.deliveries.run(second))?.state).toBe("queued");
  expect(await at.deliveries.run(summary)).toMatchObject({ state: "queued", reply: "pending" }); // the user need not wait
  at.parts.eventsMax = 10;
  at.bench.clock.now += 1000; // full for a moment: not checked again at every request
  at.worker.poke();
  await at.parts.settle(summary, { kind: "sent" });
  await at.settled(summary);
  expect(await at.parts.events()).toEqual(["one", "two", expect.stringContaining("Hook CI: answer")]);
  expect(at.parts.turns).toHaveLength(1);
});

test("blocked events request a heartbeat if one of them wants it, however many wait before it", async () => {
  await using at = makeWorkerBench();
  const later = (text: string) => wake(text, { mode: "next-heartbeat" });
  const lookAgain = async (): Promise<void> => {
    at.bench.clock.now += 1000;
    at.worker.poke();
    await at.worker.stop(0); // after its round
    at.worker = at.anotherWorker();
  };
  at.parts.eventsMax = 0;
  for (let i = 0; i < 60; i++) await send(at, later(`mode":"now" ${i}`));
  await lookAgain();
  expect([at.parts.isHastened, at.parts.heartbeats]).toEqual([false, []]);
  await send(at, wake("disk full"));
  at.worker.start();
  expect(await eventually(() => at.parts.heartbeats.length > 0, 10_000)).toBe(true);
  await lookAgain();
  at.worker.start();
  await lookAgain();
  expect([at.parts.isHastened, at.parts.heartbeats]).toEqual([true, ["events have no room"]]);
  expect(at.logged.filter((line) => line.includes("has no room"))).toHaveLength(1);
}, 30_000);

test("a wake's event is posted in the transaction that accepts it", async () => {
  await using at = makeWorkerBench();
  const runId = await send(at, wake("one"));
  expect((await at.deliveries.run(runId))?.state).toBe("succeeded");
  expect(await at.parts.events()).toEqual(["one"]);
  const { runIds } = await at.deliveries.replay(runId);
  expect((await at.deliveries.run(runIds[0]!))?.state).toBe("succeeded");
  expect(at.parts.heartbeats).toHaveLength(2);
});

test("a wake whose event cannot be stored is accepted, and posted once it can", async () => {
  await using at = makeWorkerBench();
  await at.bench.store.write(() => execute("ALTER TABLE test_events RENAME COLUMN text TO hidden"));
  const runId = await send(at, wake("one"));
  expect((await at.deliveries.run(runId))?.state).toBe("queued");
  await at.bench.store.write(() => execute("ALTER TABLE test_events RENAME COLUMN hidden TO text"));
  at.worker.poke();
  expect((await at.settled(runId)).state).toBe("succeeded");
  expect(await at.parts.events()).toEqual(["one"]);
});

test("an event without room for a day is dead, and can be replayed", async () => {
  await using at = makeWorkerBench();
  at.parts.eventsMax = 0;
  const runId = await send(at, wake("x"));
  at.bench.clock.now += DAY_MS + 1;
  at.worker.poke();
  expect(await at.settled(runId)).toMatchObject({
    state: "dead",
    reason: "the main session had no room for its event",
  });
  at.parts.eventsMax = 10;
  const { runIds } = await at.deliveries.replay(runId);
  expect((await at.settled(runIds[0]!)).state).toBe("succeeded");
});

test("the events of many concurrent wakes are posted in order", async () => {
  await using at = makeWorkerBench();
  const texts = Array.from({ length: postgresUrl === undefined ? 1000 : 200 }, (_, i) => `event ${i}`);
  const runIds = await Promise.all(texts.map((text) => send(at, wake(text))));
  await at.settled(runIds.at(-1)!);
  expect(await at.parts.events()).toEqual(texts);
});
