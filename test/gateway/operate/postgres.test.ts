/** A whole gateway with PostgreSQL: accepted requests are kept, and requests that cannot be kept are refused. */
import { Glob } from "bun";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { makePool } from "../../../src/gateway/database/postgres/server.ts";
import { execute, queryAll } from "../../../src/gateway/database/store.ts";
import { makeMetrics } from "../../../src/server/metrics/metrics.ts";
import { eventually } from "../../e2e/hearth.ts";
import { request, wake } from "../hooks/queue/deliveries/fixtures.ts";
import { makeFakeRuntime } from "../../server/fakes.ts";
import { hasPostgres, startPostgres, type PostgresServer } from "../../postgres-server.ts";
import { quiet, startChat, startGateway, TOKEN, type GatewayBench } from "./fixtures.ts";

const WAIT_MS = 60_000;

/** Rows of each growing table: finished ones, and events of another session. */
const ROWS = 20_000;
const FILL = `
  INSERT INTO deliveries (id, request_id, received_at, path, lane, auth_kind, auth_id, idempotency_key, keys_until,
      body_sha256, body_bytes, headers, response)
    SELECT 'd' || n, 'r', 4e12, '/hooks/x', 'm', 'token', 'x', n, 4e12, '', 0, '{}', '{}' FROM generate_series(1, ${ROWS}) n;
  INSERT INTO runs (id, delivery_id, item, lane, session_key, kind, action, state, step, next_at, created_at, finished_at)
    SELECT 'f' || n, 'd' || n, 0, 'm', 'main', 'wake', '{}', 'succeeded', 'event', 1, 1, 1 FROM generate_series(1, ${ROWS}) n;
  INSERT INTO session_events (session_key, text, is_wrapped, source, wants_heartbeat, is_delivered, count, created_at,
      last_at) SELECT 'other', '""', 0, '', 0, 0, 1, 1, 1 FROM generate_series(1, ${ROWS});
  INSERT INTO items SELECT 'm', n, 'r', 4e12 FROM generate_series(1, ${ROWS}) n;
`;
/** Rows that were read. */
const READ = `SELECT sum(seq_tup_read + idx_tup_fetch)::int AS rows FROM pg_stat_user_tables
  WHERE schemaname = $1 AND relname IN ('deliveries', 'runs', 'session_events', 'items')`;

test("no PostgreSQL module is loaded without database.url", async () => {
  const src = join(import.meta.dir, "../../../src");
  const files = (await Array.fromAsync(new Glob("**/*.ts").scan(src))).filter((file) => !file.includes("postgres"));
  const importing = await Promise.all(
    files.map(async (file) =>
      /^(?:import|export) [^;]*? from "[^"]*postgres[^"]*";/m.test(await Bun.file(join(src, file)).text()),
    ),
  );
  expect(files.length).toBeGreaterThan(300);
  expect(files.filter((_, i) => importing[i])).toEqual([]);
});

describe.skipIf(!hasPostgres)("database.url (Debian's postgresql)", () => {
  let server: PostgresServer;
  let schemas = 0;
  beforeAll(async () => void (server = await startPostgres()), 120_000);
  afterAll(() => server?.remove(), 60_000);

  const settings = (schema = `gateway_${++schemas}`, chatUrl = "http://127.0.0.1:1") => ({
    database: { url: server.url, schema, connections: 4 },
    hooks: { enabled: true, token: TOKEN },
    channels: { telegram: { botToken: "123:abc", baseUrl: chatUrl, defaultTo: "42" } },
    agents: quiet,
  });
  const ask = async (bench: GatewayBench, message: string): Promise<string> => {
    const response = await bench.post("agent", { message, sessionKey: "hook:talk", wakeMode: "next-heartbeat" });
    expect(response.status).toBe(202);
    return ((await response.json()) as { runId: string }).runId;
  };
  const isDone = async (bench: GatewayBench, runId: string): Promise<boolean> => {
    const run = await bench.gateway.deliveries.run(runId);
    return run?.finishedAt != null && run.reply !== "pending";
  };

  test("stores and answers wakes and turns, and the next process continues the conversation", async () => {
    const chat = startChat();
    const first = await startGateway(settings("talk", chat.url), { script: () => ({ text: "one" }) });
    expect((await first.post("wake", { text: "disk full", mode: "next-heartbeat" })).status).toBe(200);
    const runId = await ask(first, "hello");
    expect(await eventually(() => isDone(first, runId), WAIT_MS)).toBe(true);
    expect(chat.sent).toEqual(["42: one"]);
    expect((await first.events()).join()).toContain("disk full");
    await first.stop();
    const second = await startGateway(settings("talk", chat.url), { script: () => ({ text: "two" }) });
    expect(await second.gateway.deliveries.run(runId)).toMatchObject({
      state: "succeeded",
      reply: "sent",
      answer: "one",
    });
    const next = await ask(second, "again");
    expect(await eventually(() => isDone(second, next), WAIT_MS)).toBe(true);
    expect(JSON.stringify(second.runtime.requests.at(-1)?.messages)).toContain("hello");
    expect(chat.sent).toEqual(["42: one", "42: two"]);
    expect(await second.gateway.status()).toMatchObject({ queued: 0, running: 0, replies: 0, messages: 0 });
  }, 120_000);

  test("refuses webhooks with 503 while the server is away, and runs all accepted ones once it is back", async () => {
    const gate = Promise.withResolvers<void>();
    const chat = startChat();
    const answer = { text: "done", until: gate.promise };
    const bench = await startGateway(settings(undefined, chat.url), { script: () => answer });
    const metrics = makeMetrics(makeFakeRuntime(), { gateway: bench.gateway });
    const runId = await ask(bench, "before");
    expect(await eventually(() => bench.prompts().length === 1, WAIT_MS)).toBe(true);
    await server.stop("immediate");
    await expect(bench.gateway.check()).rejects.toMatchObject({ code: "storage" }); // there was nothing to write yet
    const refused = await bench.post("wake", { text: "lost" });
    expect([refused.status, Number(refused.headers.get("retry-after")) > 0]).toEqual([503, true]);
    expect(await refused.json()).toMatchObject({ ok: false, code: "unavailable" });
    await expect(bench.gateway.check()).rejects.toMatchObject({ code: "storage" });
    const waiting = /^hearth_hook_runs_(queued|running) \d+$/gm; // unknown, while the rest continues
    expect((await metrics.text()).match(waiting)).toBeNull();
    gate.resolve(); // the turn ends while its answer cannot be stored
    await server.start();
    expect(await eventually(() => isDone(bench, runId).catch(() => false), WAIT_MS)).toBe(true);
    expect(await bench.gateway.deliveries.run(runId)).toMatchObject({ state: "succeeded", answer: "done" });
    expect(chat.sent).toEqual(["42: done"]);
    expect((await bench.post("wake", { text: "back", mode: "next-heartbeat" })).status).toBe(200);
    await bench.gateway.check();
    expect((await metrics.text()).match(waiting)).toHaveLength(2);
    const events = (await bench.events()).join();
    expect([events.includes("back"), events.includes("lost")]).toEqual([true, false]);
  }, 120_000);

  test.each([
    ["with new keys", "full"],
    ["with one repeated key", "fuller"],
  ])(
    "accepts webhooks %s with few reads of full tables, although the plan was made for empty ones",
    async (_, schema) => {
      const bench = await startGateway(settings(schema));
      const { deliveries } = bench.gateway;
      const accept = async (word: string): Promise<void> => {
        const ends = Array.from({ length: 20 }, (__, i) => {
          const item = `${word} ${i}`;
          const keys = { idempotencyKey: item, providerDeliveryId: item, mappingId: "m" };
          return deliveries.accept(
            request({ ...keys, actions: [wake(item, { itemId: item, mode: "next-heartbeat" })], now: Date.now() }),
          );
        });
        expect(new Set((await Promise.all(ends)).map(({ kind }) => kind))).toEqual(new Set(["accepted"]));
      };
      const sql = makePool({ url: server.url, schema, connections: 1, name: "test" });
      const read = async (): Promise<number> => ((await sql.unsafe(READ, [schema]))[0] as { rows: number }).rows;
      await accept("first");
      await sql.unsafe("VACUUM ANALYZE"); // so that the planner knows that they are small
      if (schema === "fuller") await deliveries.accept(request({ idempotencyKey: "first 0", now: Date.now() }));
      await accept("before");
      await sql.unsafe(`${FILL} SELECT pg_stat_force_next_flush()`).simple(); // flushes the statistics of this read now
      await sql.unsafe("SELECT pg_stat_reset()");
      await accept("after");
      await bench.stop(); // the server's processes report their reads when they end
      expect(await eventually(async () => (await read()) > 0, WAIT_MS)).toBe(true);
      expect(await read()).toBeLessThan(ROWS / 10);
      await sql.close();
    },
    120_000,
  );

  test("counts events correctly with concurrent writers and readers", async () => {
    const bench = await startGateway(settings("counted"));
    const sql = makePool({ url: server.url, schema: "counted", connections: 3, name: "test" });
    const add = `INSERT INTO session_events (session_key, text, is_wrapped, source, wants_heartbeat, is_delivered, count,
      created_at, last_at) SELECT $1, 'text ' || n, 0, 'test', 0, 0, 1, n, n FROM generate_series(1, $2::int) AS n`;
    const counts = () => sql.unsafe("SELECT session_key AS key, n::int AS n FROM session_event_counts ORDER BY 1");
    const [one, other] = [await sql.reserve(), await sql.reserve()];
    await one.unsafe("BEGIN");
    await one.unsafe(add, ["main", 3]);
    await other.unsafe(add, ["main", 2]); // and is not blocked
    expect(await counts()).toEqual([{ key: "main", n: 2 }]);
    await one.unsafe("COMMIT");
    await other.unsafe(add, ["else", 1]);
    expect([...(await counts())]).toEqual([
      { key: "else", n: 1 },
      { key: "main", n: 5 },
    ]);
    await one.unsafe("DELETE FROM session_events WHERE session_key = 'main' AND created_at < 3");
    expect([...(await counts())]).toEqual([
      { key: "else", n: 1 },
      { key: "main", n: 1 },
    ]);
    await other.unsafe("DELETE FROM session_events");
    expect(await sql.unsafe("SELECT * FROM session_event_parts")).toHaveLength(0);
    one.release();
    other.release();
    await sql.close();
    await bench.stop();
  }, 60_000);

  test("deletes runs with their delivery", async () => {
    const bench = await startGateway(settings("gone"));
    const accepted = await bench.gateway.deliveries.accept(request({ now: Date.now() }));
    expect(await bench.gateway.store.read(() => queryAll("SELECT id FROM runs"))).toHaveLength(1);
    await bench.gateway.store.write(() => execute("DELETE FROM deliveries"));
    expect(accepted.kind).toBe("accepted");
    expect(await bench.gateway.store.read(() => queryAll("SELECT id FROM runs"))).toHaveLength(0);
    await bench.stop();
  }, 60_000);
});
