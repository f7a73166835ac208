import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { acceptDeliveries, type Accepted } from "../../../../../src/gateway/hooks/queue/deliveries/accept.ts";
import { answering, postgresUrl } from "../../../../stores.ts";
import type { AgentAction } from "../../../../../src/gateway/hooks/action.ts";
import { agent, makeBench, postsNothing, request, START, wake, type Bench } from "./fixtures.ts";
import { execute, queryAll, queryOne } from "../../../../../src/gateway/database/store.ts";

const HOUR_MS = 3_600_000;
const OTHER_BODY = "bb".repeat(32);

const count = async (bench: Bench, table: string): Promise<number> =>
  (await bench.store.read(() => queryOne<{ n: number }>(`SELECT count(*) AS n FROM ${table}`)))!.n;

function accepted(result: Accepted): Extract<Accepted, { runIds: unknown }> {
  if (!("runIds" in result)) throw new Error(`not accepted: ${result.kind}`);
  return result;
}

test.skipIf(postgresUrl !== undefined)(
  "an accepted request is stored on the disk before its answer is sent",
  async () => {
    await using bench = makeBench();
    const result = accepted(await bench.deliveries.accept(request({ actions: [wake("one"), agent("two")] })));
    expect(result.kind).toBe("accepted");
    expect(result.runIds).toHaveLength(2);
    expect(result.response).toMatchObject({ status: 200, body: { runIds: [...result.runIds] } });
    expect(bench.queued).toBe(1);
    using other = new Database(bench.path, { readonly: true });
    expect(other.query("SELECT id, item, state, step FROM runs ORDER BY seq").all()).toEqual([
      { id: result.runIds[0], item: 0, state: "queued", step: "event" },
      { id: result.runIds[1], item: 1, state: "queued", step: "turn" },
    ]);
  },
);

test.each(["wake", "agent"])("Idempotency-Key: the same key and body get the first answer (%s)", async (kind) => {
  await using bench = makeBench();
  const keyed = request({ idempotencyKey: "key-1", path: kind, actions: [kind === "wake" ? wake("x") : agent("x")] });
  const first = accepted(await bench.deliveries.accept(keyed));
  const again = accepted(await bench.deliveries.accept({ ...keyed, requestId: "request-2", now: START + 1000 }));
  expect(again).toEqual({ ...first, kind: "replayed" });
  expect(await count(bench, "runs")).toBe(1);
});

test("Idempotency-Key: the first answer is repeated after a restart", async () => {
  await using bench = makeBench();
  const keyed = request({ idempotencyKey: "key-1", actions: [agent("x")] });
  const first = accepted(await bench.deliveries.accept(keyed));
  await using restarted = makeBench({ path: bench.path });
  expect(accepted(await restarted.deliveries.accept(keyed))).toEqual({ ...first, kind: "replayed" });
});

test("Idempotency-Key: another body is a conflict and stores nothing", async () => {
  await using bench = makeBench();
  await bench.deliveries.accept(request({ idempotencyKey: "key-1" }));
  expect(await bench.deliveries.accept(request({ idempotencyKey: "key-1", bodySha256: OTHER_BODY }))).toEqual({
    kind: "conflict",
  });
  expect(await count(bench, "deliveries")).toBe(1);
});

test.each([
  ["another path", { path: "agent" }],
  ["another credential", { auth: { kind: "token", id: "ci" } }],
  ["another kind of credential", { auth: { kind: "signature", id: "default" } }],
])("Idempotency-Key: %s has its own keys", async (_, changes) => {
  await using bench = makeBench();
  await bench.deliveries.accept(request({ idempotencyKey: "key-1" }));
  const other = await bench.deliveries.accept(request({ idempotencyKey: "key-1", bodySha256: OTHER_BODY, ...changes }));
  expect(other.kind).toBe("accepted");
});

test("Idempotency-Key: a key is kept exactly until it expires", async () => {
  await using bench = makeBench();
  const keyed = request({ idempotencyKey: "key-1" });
  const first = accepted(await bench.deliveries.accept(keyed));
  const late = { ...keyed, bodySha256: OTHER_BODY, now: START + 24 * HOUR_MS - 1 };
  expect((await bench.deliveries.accept(late)).kind).toBe("conflict");
  const later = accepted(await bench.deliveries.accept({ ...late, now: START + 24 * HOUR_MS }));
  expect(later.kind).toBe("accepted");
  expect(later.runIds).not.toEqual(first.runIds);
});

test("Idempotency-Key: fifty equal concurrent requests become one run", async () => {
  await using bench = makeBench();
  const keyed = request({ idempotencyKey: "key-1", actions: [agent("x")] });
  const results = await Promise.all(Array.from({ length: 50 }, () => bench.deliveries.accept(keyed)));
  expect(results.filter((result) => result.kind === "accepted")).toHaveLength(1);
  expect(new Set(results.map((result) => accepted(result).runIds[0])).size).toBe(1);
});

test("a sender's delivery id is accepted once per mapping, whatever the body", async () => {
  await using bench = makeBench();
  const github = request({ path: "github", mappingId: "github", providerDeliveryId: "d-1", actions: [agent("x")] });
  const first = accepted(await bench.deliveries.accept(github));
  expect(accepted(await bench.deliveries.accept({ ...github, bodySha256: OTHER_BODY }))).toEqual({
    ...first,
    kind: "replayed",
  });
  const other = await bench.deliveries.accept({ ...github, mappingId: "gitlab" });
  expect(other.kind).toBe("accepted");
  const later = await bench.deliveries.accept({ ...github, now: START + 24 * HOUR_MS });
  expect(later.kind).toBe("accepted");
});

test("a full queue refuses requests with a time to retry, and has room again once a run ends", async () => {
  await using bench = makeBench();
  bench.settings.maxQueued = 2;
  const [first] = accepted(await bench.deliveries.accept(request())).runIds;
  expect((await bench.deliveries.accept(request({ actions: [wake("a"), wake("b")] }))).kind).toBe("full");
  expect((await bench.deliveries.accept(request())).kind).toBe("accepted");
  expect(await bench.deliveries.accept(request({ idempotencyKey: "k" }))).toEqual({
    kind: "full",
    retryAfterMs: 60_000,
  });
  await bench.store.write(() => execute("UPDATE runs SET state = 'succeeded', finished_at = 1 WHERE id = $1", first!));
  expect((await bench.deliveries.accept(request({ idempotencyKey: "k" }))).kind).toBe("accepted");
});

test("a mapping that fills its share of the queue leaves room for others, and has room again once a run ends", async () => {
  await using bench = makeBench();
  bench.settings.maxQueuedOf = (mappingId) => (mappingId === "loud" ? 2 : 10);
  const from = (mappingId: string | undefined, n: number) =>
    bench.deliveries.accept(request({ mappingId, actions: Array.from({ length: n }, () => wake("x")) }));
  const [first] = accepted(await from("loud", 2)).runIds;
  expect(await from("loud", 1)).toEqual({ kind: "full", retryAfterMs: 60_000, mappingId: "loud" });
  expect((await from("quiet", 1)).kind).toBe("accepted");
  expect((await from(undefined, 1)).kind).toBe("accepted");
  await bench.store.write(() => execute("UPDATE runs SET finished_at = 1 WHERE id = $1", first!));
  expect((await from("loud", 1)).kind).toBe("accepted");
  await bench.store.write(() => execute("DELETE FROM runs WHERE finished_at IS NULL AND lane = 'mapping loud'"));
  expect((await from("loud", 2)).kind).toBe("accepted");
});

test("the retry time of a full queue follows the rate at which all runs, or the mapping's runs, end", async () => {
  await using bench = makeBench();
  bench.settings.maxQueued = 4;
  bench.settings.maxQueuedOf = () => 2;
  const from = (mappingId: string, n: number) =>
    bench.deliveries.accept(request({ mappingId, actions: Array.from({ length: n }, () => wake("x")) }));
  await from("a", 2);
  bench.clock.now += 30_000;
  for (let i = 0; i < 10; i++) bench.deliveries.ended(i < 3 ? "mapping a" : "mapping b");
  expect(await from("a", 2)).toEqual({ kind: "full", mappingId: "a", retryAfterMs: 20_000 });
  await from("b", 2);
  expect(await from("c", 2)).toEqual({ kind: "full", retryAfterMs: 6000 });
});

test("a request with more new runs than can ever fit is refused for good, and known items need no room", async () => {
  await using bench = makeBench();
  bench.settings.maxQueued = 4;
  bench.settings.maxQueuedOf = () => 3;
  const items = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, i) => wake("x", { itemId: `item-${from + i}` }));
  const batch = (from: number, to: number) =>
    bench.deliveries.accept(request({ mappingId: "mail", actions: items(from, to) }));
  expect(await batch(0, 4)).toEqual({ kind: "too_many", limit: 3 });
  expect(await bench.deliveries.accept(request({ actions: items(0, 5) }))).toEqual({ kind: "too_many", limit: 4 });
  const first = accepted(await batch(0, 3));
  expect((await batch(3, 4)).kind).toBe("full");
  expect(accepted(await batch(0, 3)).runIds).toEqual([...first.runIds]);
  await bench.store.write(() => execute("UPDATE runs SET finished_at = 1"));
  expect(accepted(await batch(0, 6)).runIds.slice(0, 3)).toEqual([...first.runIds]);
  expect(await count(bench, "runs")).toBe(6);
});

test("equal items of a request become one run, and a refused batch stores no items", async () => {
  await using bench = makeBench();
  bench.settings.maxQueued = 1;
  const two = request({ actions: [wake("x", { itemId: "1" }), wake("x", { itemId: "2" })] });
  expect((await bench.deliveries.accept(two)).kind).toBe("too_many");
  expect(await count(bench, "items")).toBe(0);
  const twice = accepted(
    await bench.deliveries.accept(request({ actions: [wake("x", { itemId: "1" }), wake("x", { itemId: "1" })] })),
  );
  expect(new Set(twice.runIds).size).toBe(1);
  expect(await count(bench, "runs")).toBe(1);
});

test("a repeat returns the run ids of the first answer, also those of earlier items", async () => {
  await using bench = makeBench();
  const item = request({ actions: [wake("x", { itemId: "1" })] });
  const first = accepted(await bench.deliveries.accept(item));
  const keyed = { ...item, idempotencyKey: "k" };
  expect(accepted(await bench.deliveries.accept(keyed)).runIds).toEqual(first.runIds);
  expect(await bench.deliveries.accept(keyed)).toMatchObject({ kind: "replayed", runIds: first.runIds });
});

test("a request whose answer cannot be made stores no delivery", async () => {
  await using bench = makeBench();
  const failing = request({
    respond: () => {
      throw new Error("no answer");
    },
  });
  await expect(bench.deliveries.accept(failing)).rejects.toThrow("no answer");
  expect(await count(bench, "deliveries")).toBe(0);
});

test("concurrent requests are all accepted, in order within their session", async () => {
  await using bench = makeBench();
  const numbers = Array.from({ length: postgresUrl === undefined ? 1000 : 200 }, (_, i) => i);
  const results = await Promise.all(
    numbers.map((i) =>
      bench.deliveries.accept(request({ path: "agent", actions: [agent(`${i}`, { sessionKey: `hook:${i % 7}` })] })),
    ),
  );
  expect(results.every((result) => result.kind === "accepted")).toBe(true);
  const rows = await bench.store.read(() =>
    queryAll<{ key: string; action: string }>("SELECT session_key AS key, action FROM runs ORDER BY seq"),
  );
  for (const [key, group] of Map.groupBy(rows, (row) => row.key)) {
    const expected = numbers.filter((i) => `hook:${i % 7}` === key);
    const sent = group.map(({ action }) => Number((JSON.parse(action) as AgentAction).message[0]!.text));
    expect(sent).toEqual(expected);
  }
  expect(rows).toHaveLength(numbers.length);
});

test("a transaction that fails after acceptDeliveries stores nothing", async () => {
  await using bench = makeBench();
  const options = {
    maxQueued: 10,
    maxQueuedOf: () => 10,
    keysMs: HOUR_MS,
    sessionKeyOf: () => "hook:x",
    msUntil: () => 1,
    posting: () => answering(postsNothing),
  };
  const failing = bench.store.write(function* () {
    yield* acceptDeliveries([request({ idempotencyKey: "k" })], options);
    throw new Error("later in the same transaction");
  });
  await expect(failing).rejects.toThrow("later");
  expect(await count(bench, "runs")).toBe(0);
  expect(await bench.store.read(() => queryOne("SELECT n FROM open_runs"))).toEqual({ n: 0 });
});
