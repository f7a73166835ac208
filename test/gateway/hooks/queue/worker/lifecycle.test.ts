import { expect, test } from "bun:test";
import { agent, START, wake } from "../deliveries/fixtures.ts";
import { ended, gate, makeWorkerBench, ok, send, type WorkerBench } from "./parts.ts";
import { AppError } from "../../../../../src/base/errors.ts";
import { execute, queryAll } from "../../../../../src/gateway/database/store.ts";
import { eventually } from "../../../../e2e/hearth.ts";

const MINUTE_MS = 60_000;

test("cancel: a waiting run ends at once and never runs", async () => {
  await using at = makeWorkerBench();
  const model = gate(at);
  const same = { sessionKey: "hook:order" };
  const first = await send(at, agent("a", same));
  const second = await send(at, agent("b", same));
  await model.begins(first);
  expect(await at.worker.cancel(second)).toBe("cancelled");
  expect(await at.deliveries.run(second)).toMatchObject({ state: "cancelled", reason: "cancelled before it ran" });
  model.open(first);
  await at.settled(first);
  expect(model.begun()).toEqual([first]);
  expect(await at.parts.events()).toEqual(["Hook (cancelled): cancelled before it ran", "Hook: done"]);
});

test("cancel: a waiting run never runs, also if its event finds no room", async () => {
  await using at = makeWorkerBench();
  const model = gate(at);
  const same = { sessionKey: "hook:order" };
  const first = await send(at, agent("a", same));
  const second = await send(at, agent("b", same));
  const third = await send(at, agent("c", same));
  await model.begins(first);
  at.parts.eventsMax = 0;
  expect(await at.worker.cancel(second)).toBe("cancelled");
  expect(await at.worker.cancel(second)).toBe("over");
  model.open(first);
  await model.begins(third); // the one before it is no longer a turn
  model.open(third);
  expect(await at.deliveries.run(second)).toMatchObject({ state: "queued", reason: "cancelled before it ran" });
  at.parts.eventsMax = 10;
  at.bench.clock.now += 2000;
  at.worker.poke();
  expect((await at.settled(second)).state).toBe("cancelled");
  expect(model.begun()).toEqual([first, third]);
  expect(await at.parts.events()).toContain("Hook (cancelled): cancelled before it ran");
});

test("cancel: a running model is stopped", async () => {
  await using at = makeWorkerBench();
  const model = gate(at);
  const runId = await send(at, agent("a"));
  await model.begins(runId);
  expect(await at.worker.cancel(runId)).toBe("stopping");
  expect(await at.settled(runId)).toMatchObject({ state: "cancelled", reason: "cancelled while it ran" });
  expect(at.parts.turns[0]?.signal.aborted).toBe(true);
  expect(await at.worker.cancel(runId)).toBe("over");
  expect(await at.worker.cancel("nobody")).toBe(undefined);
});

test("cancel: a run that fails before its worker notices the cancellation is not retried", async () => {
  await using at = makeWorkerBench();
  const model = gate(at);
  const runId = await send(at, agent("a"));
  await model.begins(runId);
  await at.bench.store.write(() => execute("UPDATE runs SET cancel_at = $1 WHERE id = $2", START, runId));
  model.open(runId, ended({ status: "error", error: "the model died", isTemporary: true }));
  const after = await at.until(runId, ({ reason }) => reason !== null);
  expect(after).toMatchObject({ state: "cancelled", reason: "cancelled while it ran" });
});

test("cancel: a run cancelled during a shutdown is not run by the next worker", async () => {
  await using at = makeWorkerBench();
  const begun = Promise.withResolvers<void>();
  const aborted = Promise.withResolvers<void>();
  const over = Promise.withResolvers<void>();
  at.parts.answer = async ({ signal }) => {
    signal.addEventListener("abort", () => aborted.resolve());
    begun.resolve();
    await over.promise;
    return ended({ status: "cancelled" });
  };
  const runId = await send(at, agent("a"));
  await begun.promise;
  const stopped = at.worker.stop(0);
  await aborted.promise;
  expect(await at.worker.cancel(runId)).toBe("stopping");
  over.resolve();
  await stopped;
  expect(await at.deliveries.run(runId)).toMatchObject({ state: "cancelled", reason: "cancelled while it ran" });
});

test("stop lets running turns finish within the grace period, and begins none", async () => {
  await using at = makeWorkerBench();
  const model = gate(at);
  const same = { sessionKey: "hook:order" };
  const first = await send(at, agent("a", same));
  const second = await send(at, agent("b", same));
  await model.begins(first);
  const stopped = at.worker.stop(60_000);
  model.open(first);
  await stopped;
  expect((await at.deliveries.run(first))?.state).toBe("succeeded");
  expect((await at.deliveries.run(second))?.state).toBe("queued");
  expect(model.begun()).toEqual([first]);
});

/** Holds back the answer of the next read that `isIt` recognises. `found`: it has arrived; `tell` releases it. */
function holdRead({ bench: { store } }: WorkerBench, isIt: (found: unknown) => boolean) {
  const found = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const read = store.read.bind(store);
  store.read = async (script) => {
    const result = await read(script);
    if (!isIt(result)) return result;
    store.read = read;
    found.resolve();
    await released.promise;
    return result;
  };
  return { found: found.promise, tell: released.resolve };
}

test("stop begins no turn that is found due during the stop", async () => {
  await using at = makeWorkerBench();
  at.settings.maxConcurrent = 0; // no one looks for turns
  const runId = await send(at, agent("x"));
  const held = holdRead(at, (found) => found === true);
  at.settings.maxConcurrent = 1;
  at.worker.poke();
  await held.found;
  const stopped = at.worker.stop(60_000);
  held.tell();
  await stopped;
  expect(at.parts.turns).toEqual([]);
  expect(await at.deliveries.run(runId)).toMatchObject({ state: "queued", attempts: 0 });
});

test("stop sends no callback that is found due during the stop", async () => {
  await using at = makeWorkerBench();
  const { callbacks } = at.settings;
  let begun = 0;
  Object.defineProperty(at.settings, "callbacks", { get: () => (begun++, callbacks) }); // each one reads it
  const isDue = (found: unknown): boolean => Array.isArray(found) && found.some((each) => "createdAt" in each);
  const held = holdRead(at, isDue); // before any read
  const runId = await send(at, agent("x", { callbackUrl: "http://127.0.0.1:9/done" }));
  await held.found;
  const stopped = at.worker.stop(60_000);
  held.tell();
  await stopped;
  expect(begun).toBe(0);
  expect((await at.deliveries.run(runId))?.callback).toBe("pending");
});

test("stop returns unfinished turns to the queue, and the next worker runs them", async () => {
  await using at = makeWorkerBench();
  const model = gate(at);
  const runId = await send(at, agent("a"));
  await model.begins(runId);
  await at.worker.stop(0);
  expect(await at.deliveries.run(runId)).toMatchObject({ state: "queued", attempts: 0 });
  at.parts.answer = async () => ok("done");
  at.worker = at.anotherWorker();
  at.worker.start();
  expect((await at.settled(runId)).state).toBe("succeeded");
  expect(await at.parts.events()).toEqual(["Hook: done"]);
});

/** Not the name of any worker of this process. */
const DEAD_OWNER = "elsewhere/1/1.5/x";

/** A run in the state that a killed process leaves. */
async function orphan(at: WorkerBench, changes = ""): Promise<string> {
  await at.worker.stop(0);
  const runId = await send(at, agent("a"));
  await at.bench.store.write(() =>
    execute("INSERT INTO workers (owner, started_at) VALUES ($1, $2)", DEAD_OWNER, START),
  );
  await at.bench.store.write(() =>
    execute(
      `UPDATE runs SET state = 'running', attempts = 1, started_at = $1, lease_until = $2, lease_owner = $3 ${changes}
       WHERE id = $4`,
      START,
      START + MINUTE_MS / 2,
      DEAD_OWNER,
      runId,
    ),
  );
  at.worker = at.anotherWorker();
  at.worker.start();
  return runId;
}

test("the turn of a killed process is run again after a moment", async () => {
  await using at = makeWorkerBench();
  const runId = await orphan(at);
  await at.until(runId, (status) => status.state === "queued");
  expect((await at.deliveries.run(runId))?.reason).toBe("the server ended while it ran");
  at.bench.clock.now += 1000;
  at.worker.poke();
  expect(await at.settled(runId)).toMatchObject({ state: "succeeded", attempts: 2, reason: null });
});

test("a run claimed in this worker's name without its knowledge is returned and run at once", async () => {
  await using at = makeWorkerBench();
  const model = gate(at);
  const first = await send(at, agent("a"));
  await model.begins(first);
  const [owner] = await at.bench.store.read(() => queryAll<{ owner: string }>("SELECT owner FROM workers"));
  const second = await send(at, agent("b", { sessionKey: "hook:b" }));
  await model.begins(second);
  model.open(second);
  await at.settled(second);
  // the state after a commit whose sync failed
  await at.bench.store.write(() =>
    execute(
      `UPDATE runs SET state = 'running', finished_at = NULL, step = 'turn', outcome = NULL, attempts = 1,
         lease_owner = $1, lease_until = $2 WHERE id = $3`,
      owner!.owner,
      START + MINUTE_MS / 2,
      second,
    ),
  );
  at.worker.poke();
  await model.begins(second);
  expect((await at.deliveries.run(second))?.attempts).toBe(1);
});

test("a turn whose run another worker holds is stopped, and its answer is not stored", async () => {
  await using at = makeWorkerBench();
  const model = gate(at);
  const runId = await send(at, agent("a"));
  await model.begins(runId);
  await at.bench.store.write(() =>
    execute("UPDATE runs SET lease_owner = 'other', lease_until = 1000000000000000 WHERE id = $1", runId),
  );
  model.open(runId);
  await at.settled(await send(at, wake("a round went by")));
  expect((await at.deliveries.run(runId))?.answer).toBe(null);
});

test("a database outage and its end are logged once", async () => {
  await using at = makeWorkerBench();
  const model = gate(at);
  const runId = await send(at, agent("a"));
  await model.begins(runId);
  const { store } = at.bench;
  const { read, write } = store;
  const away = (): Promise<never> => Promise.reject(new AppError("storage", "the database is away"));
  Object.assign(store, { read: away, write: away });
  model.open(runId);
  for (let i = 0; i < 50; i++) {
    at.worker.poke();
    await Bun.sleep(50); // storing its end is retried every second
  }
  Object.assign(store, { read: read.bind(store), write: write.bind(store) });
  expect((await at.settled(runId)).state).toBe("succeeded");
  at.worker.poke();
  // every ten seconds it renews leases, which fails too on a slow machine
  const logged = (): string[] => at.logged.filter((line) => !line.includes("renewing leases failed"));
  expect(await eventually(() => logged().length >= 4, 10_000)).toBe(true);
  const [ends, deliveries] = [`storing the turn of run ${runId} failed`, "processing deliveries failed"];
  const problem = '{"error":"the database is away"}';
  expect(logged().toSorted()).toEqual(
    [
      ...[ends, deliveries].map((what) => `hooks: ${what} ${problem}`),
      ...[ends, deliveries].map((what) => `recovered: hooks: ${what} {}`),
    ].toSorted(),
  );
});

test("a run cancelled before its process was killed is not run again", async () => {
  await using at = makeWorkerBench();
  const runId = await orphan(at, ", cancel_at = 1");
  expect((await at.settled(runId)).state).toBe("cancelled");
  expect(at.parts.turns).toEqual([]);
});

test("a run whose answer is stored is not run again", async () => {
  await using at = makeWorkerBench();
  at.parts.eventsMax = 0;
  const runId = await send(at, agent("x"));
  await at.until(runId, (status) => status.answer !== null);
  await at.worker.stop(0);
  at.parts.eventsMax = 10;
  at.worker = at.anotherWorker();
  at.worker.start();
  expect((await at.settled(runId)).state).toBe("succeeded");
  expect(at.parts.turns).toHaveLength(1);
});

test("a turn is stored completely or not at all", async () => {
  await using at = makeWorkerBench();
  const { enqueueEvent } = at.parts.ports;
  Object.assign(at.parts.ports, {
    enqueueEvent() {
      throw new TypeError("a bug");
    },
  });
  const runId = await send(at, agent("x", { deliver: true }));
  await at.until(runId, (status) => status.state === "running");
  await at.worker.stop(60_000);
  expect(await at.deliveries.run(runId)).toMatchObject({ state: "running", answer: null });
  expect(await at.parts.replies()).toEqual([]);
  expect(await at.bench.store.read(() => queryAll("SELECT * FROM test_turns"))).toEqual([]);
  Object.assign(at.parts.ports, { enqueueEvent });
  await at.bench.store.write(() => execute("UPDATE runs SET lease_owner = 'a process that ended'"));
  at.worker = at.anotherWorker();
  at.worker.start();
  expect(await at.until(runId, (status) => status.reply === "pending")).toMatchObject({
    state: "succeeded",
    attempts: 2,
  });
});

test("a watcher gets a run's text and states until the run ends", async () => {
  await using at = makeWorkerBench();
  at.parts.answer = async ({ onText }) => {
    onText?.("do");
    onText?.("ne");
    return ok("done");
  };
  const same = { sessionKey: "hook:order" };
  await at.worker.stop(0);
  const runId = await send(at, agent("x", same));
  at.worker = at.anotherWorker();
  const news = at.worker.watch(runId);
  expect((await news.next()).value).toMatchObject({ kind: "status", status: { state: "queued" } });
  at.worker.start();
  let text = "";
  const states: string[] = [];
  for await (const each of news) {
    if (each.kind === "text") text += each.text;
    else states.push(each.status.state);
  }
  expect(text).toBe("done");
  expect(states.at(-1)).toBe("succeeded");
});

test("watching an unknown run returns nothing, and an aborted watcher is removed", async () => {
  await using at = makeWorkerBench();
  expect(await Array.fromAsync(at.worker.watch("nobody"))).toEqual([]);
  gate(at);
  const runId = await send(at, agent("x"));
  const leaving = new AbortController();
  const news = at.worker.watch(runId, leaving.signal);
  await news.next();
  leaving.abort();
  for await (const each of news) expect(each.kind).toBe("status");
});
