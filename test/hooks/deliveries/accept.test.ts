import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { acceptDelivery, type Accepted } from "../../../src/hooks/deliveries/accept.ts";
import { agent, makeBench, request, START, wake, type Bench } from "./fixtures.ts";

const HOUR_MS = 3_600_000;
const OTHER_BODY = "bb".repeat(32);

const count = (bench: Bench, table: string): number =>
  bench.db.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}`).get()!.n;

function accepted(result: Accepted): Extract<Accepted, { runIds: unknown }> {
  if (!("runIds" in result)) throw new Error(`not accepted: ${result.kind}`);
  return result;
}

test("what was accepted is on the disk when the sender hears of it", async () => {
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
});

test.each(["wake", "agent"])("Idempotency-Key: the same key and body get the first answer (%s)", async (kind) => {
  await using bench = makeBench();
  const keyed = request({ idempotencyKey: "key-1", path: kind, actions: [kind === "wake" ? wake("x") : agent("x")] });
  const first = accepted(await bench.deliveries.accept(keyed));
  const again = accepted(await bench.deliveries.accept({ ...keyed, requestId: "request-2", now: START + 1000 }));
  expect(again).toEqual({ ...first, kind: "replayed" });
  expect(count(bench, "runs")).toBe(1);
});

test("Idempotency-Key: the first answer comes after a restart too", async () => {
  await using bench = makeBench();
  const keyed = request({ idempotencyKey: "key-1", actions: [agent("x")] });
  const first = accepted(await bench.deliveries.accept(keyed));
  await using restarted = makeBench({ path: bench.path });
  expect(accepted(await restarted.deliveries.accept(keyed))).toEqual({ ...first, kind: "replayed" });
});

test("Idempotency-Key: another body is a conflict, and changes nothing", async () => {
  await using bench = makeBench();
  await bench.deliveries.accept(request({ idempotencyKey: "key-1" }));
  expect(await bench.deliveries.accept(request({ idempotencyKey: "key-1", bodySha256: OTHER_BODY }))).toEqual({
    kind: "conflict",
  });
  expect(count(bench, "deliveries")).toBe(1);
});

test.each([
  ["another path", { path: "agent" }],
  ["another credential", { auth: { kind: "token", id: "ci" } }],
  ["another kind of credential", { auth: { kind: "signature", id: "default" } }],
])("Idempotency-Key: %s is another scope", async (_, changes) => {
  await using bench = makeBench();
  await bench.deliveries.accept(request({ idempotencyKey: "key-1" }));
  const other = await bench.deliveries.accept(request({ idempotencyKey: "key-1", bodySha256: OTHER_BODY, ...changes }));
  expect(other.kind).toBe("accepted");
});

test("Idempotency-Key: a key is forgotten when its time is over, not before", async () => {
  await using bench = makeBench();
  const keyed = request({ idempotencyKey: "key-1" });
  const first = accepted(await bench.deliveries.accept(keyed));
  const late = { ...keyed, bodySha256: OTHER_BODY, now: START + 24 * HOUR_MS - 1 };
  expect((await bench.deliveries.accept(late)).kind).toBe("conflict");
  const later = accepted(await bench.deliveries.accept({ ...late, now: START + 24 * HOUR_MS }));
  expect(later.kind).toBe("accepted");
  expect(later.runIds).not.toEqual(first.runIds);
});

test("Idempotency-Key: fifty equal requests at once are one", async () => {
  await using bench = makeBench();
  const keyed = request({ idempotencyKey: "key-1", actions: [agent("x")] });
  const results = await Promise.all(Array.from({ length: 50 }, () => bench.deliveries.accept(keyed)));
  expect(results.filter((result) => result.kind === "accepted")).toHaveLength(1);
  expect(new Set(results.map((result) => accepted(result).runIds[0])).size).toBe(1);
});

test("a sender's delivery id counts once for a mapping, whatever the body", async () => {
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

test("a full queue accepts nothing, says when to come back, and has room again once a run is over", async () => {
  await using bench = makeBench();
  bench.settings.maxQueued = 2;
  const [first] = accepted(await bench.deliveries.accept(request())).runIds;
  expect((await bench.deliveries.accept(request({ actions: [wake("a"), wake("b")] }))).kind).toBe("full");
  expect((await bench.deliveries.accept(request())).kind).toBe("accepted");
  expect(await bench.deliveries.accept(request({ idempotencyKey: "k" }))).toEqual({ kind: "full", retryAfterMs: 5000 });
  await bench.writer.write((db) =>
    db.query("UPDATE runs SET state = 'succeeded', finished_at = 1 WHERE id = ?").run(first!),
  );
  expect((await bench.deliveries.accept(request({ idempotencyKey: "k" }))).kind).toBe("accepted");
});

test("a mapping that fills its share of the queue leaves room for the others, until one of its runs is over", async () => {
  await using bench = makeBench();
  bench.settings.maxQueuedOf = (mappingId) => (mappingId === "loud" ? 2 : 10);
  const from = (mappingId: string | undefined, n: number) =>
    bench.deliveries.accept(request({ mappingId, actions: Array.from({ length: n }, () => wake("x")) }));
  const [first] = accepted(await from("loud", 2)).runIds;
  expect(await from("loud", 1)).toEqual({ kind: "full", retryAfterMs: 5000, mappingId: "loud" });
  expect((await from("quiet", 1)).kind).toBe("accepted");
  expect((await from(undefined, 1)).kind).toBe("accepted");
  await bench.writer.write((db) => db.run("UPDATE runs SET finished_at = 1 WHERE id = ?", [first!]));
  expect((await from("loud", 1)).kind).toBe("accepted");
  await bench.writer.write((db) => db.run("DELETE FROM runs WHERE finished_at IS NULL AND lane = 'mapping loud'"));
  expect((await from("loud", 2)).kind).toBe("accepted");
});

test("a request that cannot be stored is no delivery", async () => {
  await using bench = makeBench();
  const failing = request({
    respond: () => {
      throw new Error("no answer");
    },
  });
  await expect(bench.deliveries.accept(failing)).rejects.toThrow("no answer");
  expect(count(bench, "deliveries")).toBe(0);
});

test("a thousand requests at once are all accepted, in order within their session", async () => {
  await using bench = makeBench();
  const numbers = Array.from({ length: 1000 }, (_, i) => i);
  const results = await Promise.all(
    numbers.map((i) =>
      bench.deliveries.accept(request({ path: "agent", actions: [agent(`${i}`, { sessionKey: `hook:${i % 7}` })] })),
    ),
  );
  expect(results.every((result) => result.kind === "accepted")).toBe(true);
  const rows = bench.db
    .query<{ key: string; n: number }, []>(
      "SELECT session_key AS key, CAST(action ->> '$.message[0].text' AS INTEGER) AS n FROM runs ORDER BY seq",
    )
    .all();
  for (const [key, group] of Map.groupBy(rows, (row) => row.key)) {
    const expected = numbers.filter((i) => `hook:${i % 7}` === key);
    expect(group.map((row) => row.n)).toEqual(expected);
  }
  expect(rows).toHaveLength(1000);
});

test("acceptDelivery looks nothing up outside its transaction: a rollback leaves no trace", async () => {
  await using bench = makeBench();
  const options = { maxQueued: 10, maxQueuedOf: () => 10, keysMs: HOUR_MS, sessionKeyOf: () => "hook:x" };
  const failing = bench.writer.write((db) => {
    acceptDelivery(db, request({ idempotencyKey: "k" }), options);
    throw new Error("later in the same transaction");
  });
  await expect(failing).rejects.toThrow("later");
  expect(count(bench, "runs")).toBe(0);
  expect(bench.db.query("SELECT n FROM open_runs").get()).toEqual({ n: 0 });
});
