import { expect, test } from "bun:test";
import type { Accepted } from "../../../../../src/gateway/hooks/queue/deliveries/accept.ts";
import { agent, makeBench, request, START, wake, type Bench } from "./fixtures.ts";
import { execute } from "../../../../../src/gateway/database/store.ts";

const DAY_MS = 24 * 3_600_000;

const accepted = (result: Accepted): { deliveryId: string; runIds: readonly string[] } => {
  if (!("runIds" in result)) throw new Error(result.kind);
  return result;
};
const finish = (bench: Bench, runId: string, state: string): Promise<unknown> =>
  bench.store.write(() =>
    execute("UPDATE runs SET state = $1, finished_at = $2 WHERE id = $3", state, bench.clock.now, runId),
  );

test("list: returns the newest first, by page and filter, with the states of runs and without bodies", async () => {
  await using bench = makeBench();
  const ids: string[] = [];
  for (let i = 0; i < 5; i++) {
    const changes = i % 2 === 0 ? { path: "wake" } : { path: "ci", mappingId: "github" };
    ids.push(
      accepted(
        await bench.deliveries.accept(request({ ...changes, requestId: `r${i}`, actions: [wake("a private word")] })),
      ).deliveryId,
    );
  }
  const listed = async (filter: object): Promise<string[]> =>
    (await bench.deliveries.list(filter)).map((delivery) => delivery.id);
  expect(await listed({})).toEqual(ids.toReversed());
  expect(await listed({ limit: 2 })).toEqual([ids[4]!, ids[3]!]);
  expect(await listed({ limit: 2, before: ids[3] })).toEqual([ids[2]!, ids[1]!]);
  expect(await listed({ mappingId: "github" })).toEqual([ids[3]!, ids[1]!]);
  expect(await listed({ path: "wake" })).toEqual([ids[4]!, ids[2]!, ids[0]!]);
  const [newest] = await bench.deliveries.list({ limit: 1 });
  await finish(bench, newest!.runs[0]!.id, "dead");
  expect(await listed({ state: "dead" })).toEqual([ids[4]!]);
  const lost = (await bench.deliveries.list({ limit: 2 }))[1]!; // there are five
  await finish(bench, lost.runs[0]!.id, "succeeded");
  expect(await listed({ state: "failed" })).toEqual([]);
  await bench.store.write(() => execute("UPDATE runs SET reply = 'failed' WHERE id = $1", lost.runs[0]!.id));
  expect(await listed({ state: "failed" })).toEqual([lost.id]);
  expect(JSON.stringify(await bench.deliveries.list({}))).not.toContain("private");
});

test("find: returns everything that is stored of a delivery", async () => {
  await using bench = makeBench();
  const action = agent("x", { sessionKey: "hook:Order" });
  const given = request({
    path: "github",
    mappingId: "github",
    idempotencyKey: "k",
    providerDeliveryId: "p",
    rawBody: new TextEncoder().encode("{}"),
    actions: [action],
  });
  const { deliveryId, runIds } = accepted(await bench.deliveries.accept(given));
  expect(await bench.deliveries.find(deliveryId)).toMatchObject({
    id: deliveryId,
    requestId: "request-1",
    receivedAt: START,
    mappingId: "github",
    authKind: "token",
    authId: "default",
    providerDeliveryId: "p",
    idempotencyKey: "k",
    bodyBytes: 12,
    body: given.rawBody!,
    headers: { "user-agent": "curl" },
    response: { status: 200, body: { ok: true, runIds } },
    runs: [{ id: runIds[0]!, kind: "agent", state: "queued", action, sessionKey: "hook:order", callback: null }],
  });
  expect(await bench.deliveries.find("nobody")).toBe(undefined);
  expect(await bench.deliveries.run("nobody")).toBe(undefined);
});

test("replay: makes a new delivery linked to the old one, once all its runs have ended", async () => {
  await using bench = makeBench();
  const given = request({ idempotencyKey: "k", actions: [wake("one"), agent("two")] });
  const { deliveryId, runIds } = accepted(await bench.deliveries.accept(given));
  await finish(bench, runIds[0]!, "succeeded");
  await expect(bench.deliveries.replay(deliveryId)).rejects.toThrow(`run '${runIds[1]}' is queued`);
  await finish(bench, runIds[1]!, "dead");
  const again = await bench.deliveries.replay(deliveryId);
  const found = (await bench.deliveries.find(again.deliveryId))!;
  expect(found).toMatchObject({ replayOf: deliveryId, idempotencyKey: null, bodySha256: given.bodySha256 });
  expect(found.runs.map((run) => [run.state, run.replayOf, run.action])).toEqual([
    ["queued", runIds[0]!, given.actions[0]!],
    ["queued", runIds[1]!, given.actions[1]!],
  ]);
  expect((await bench.deliveries.accept(given)).kind).toBe("replayed"); // the key still belongs to the first
  const one = await bench.deliveries.replay(runIds[1]!);
  expect(one.runIds).toHaveLength(1);
  expect(bench.queued).toBe(3); // a repeated answer makes no new run
});

test("replay: unknown ids and a full queue are errors", async () => {
  await using bench = makeBench();
  await expect(bench.deliveries.replay("nobody")).rejects.toMatchObject({ code: "not_found" });
  const { deliveryId, runIds } = accepted(await bench.deliveries.accept(request()));
  await finish(bench, runIds[0]!, "failed");
  bench.settings.maxQueued = 0;
  await expect(bench.deliveries.replay(deliveryId)).rejects.toMatchObject({ code: "busy" });
});

test("prune: deletes finished deliveries after the retention time, and keeps open and keyed ones", async () => {
  await using bench = makeBench();
  const old = accepted(await bench.deliveries.accept(request()));
  const open = accepted(await bench.deliveries.accept(request()));
  const replying = accepted(await bench.deliveries.accept(request()));
  bench.settings.keysMs = 60 * DAY_MS;
  const keyed = accepted(await bench.deliveries.accept(request({ idempotencyKey: "k" })));
  for (const { runIds } of [old, replying, keyed]) await finish(bench, runIds[0]!, "succeeded");
  await bench.store.write(() => execute("UPDATE runs SET reply = 'pending' WHERE id = $1", replying.runIds[0]!));
  bench.clock.now += 14 * DAY_MS;
  expect(await bench.deliveries.prune()).toBe(0);
  bench.clock.now += 1;
  expect(await bench.deliveries.prune()).toBe(1);
  const left = (await bench.deliveries.list({})).map((delivery) => delivery.id);
  expect(left).toEqual([keyed.deliveryId, replying.deliveryId, open.deliveryId]);
  expect(await bench.deliveries.run(old.runIds[0]!)).toBe(undefined);
  expect((await bench.deliveries.stats()).byState).toEqual({ queued: 1 });
});

test("prune: deletes thousands in batches, and can be stopped between them", async () => {
  await using bench = makeBench();
  const all = await Promise.all(Array.from({ length: 1000 }, () => bench.deliveries.accept(request({ actions: [] }))));
  bench.clock.now += 15 * DAY_MS;
  const stop = new AbortController();
  const pruning = bench.deliveries.prune(stop.signal);
  stop.abort();
  expect(await pruning).toBe(200); // the current batch
  expect(await bench.deliveries.prune()).toBe(all.length - 200);
});

test("stats: returns the number of runs by state, and how long the oldest has waited", async () => {
  await using bench = makeBench();
  expect(await bench.deliveries.stats()).toEqual({
    byState: {},
    oldestQueuedMs: 0,
    pendingReplies: 0,
    pendingCallbacks: 0,
  });
  await bench.deliveries.accept(request({ actions: [wake("a"), agent("b")] }));
  bench.clock.now += 1234;
  expect(await bench.deliveries.stats()).toMatchObject({ byState: { queued: 2 }, oldestQueuedMs: 1234 });
});
