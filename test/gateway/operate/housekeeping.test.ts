/** Retention of each kind of record. */
import { expect, test } from "bun:test";
import { alone } from "../../../src/gateway/database/peers.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { makeLogger } from "../../../src/base/log.ts";
import { keepHouse, tidy } from "../../../src/gateway/operate/housekeeping.ts";
import { manualClock } from "../agent/parts.ts";
import { eventually } from "../../e2e/hearth.ts";
import { quiet, startChat, startGateway, TOKEN } from "./fixtures.ts";
import { execute, queryOne, type Transaction } from "../../../src/gateway/database/store.ts";

const WAIT_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const log = makeLogger({ write: () => {}, now: Date.now, debug: false });

/** Makes all records older. */
function* age(ms: number): Transaction<void> {
  for (const [table, ...columns] of TIMES) {
    const older = columns.map((column) => `${column} = ${column} - ${ms}`);
    yield* execute(`UPDATE ${table} SET ${older.join(", ")}`);
  }
}

const TIMES = [
  ["deliveries", "received_at", "keys_until"],
  ["runs", "created_at", "finished_at"],
  ["outbox", "created_at", "settled_at"],
  ["sessions", "created_at", "updated_at"],
] as const;

test("finished deliveries, messages and sessions are deleted after their time, and open or used ones are kept", async () => {
  const chat = startChat();
  const gate = Promise.withResolvers<void>();
  const bench = await startGateway(
    {
      hooks: { enabled: true, token: TOKEN, queue: { retentionDays: 2 } },
      session: { idleExpiry: "120h" },
      channels: { telegram: { botToken: "123:abc", baseUrl: chat.url, defaultTo: "42" } },
      agents: quiet,
    },
    { script: (_, i) => ({ text: "done", ...(i === 0 ? {} : { until: gate.promise }) }) },
  );
  const { gateway } = bench;
  const count = async (table: string): Promise<number> =>
    (await gateway.store.read(() => queryOne<{ n: number }>(`SELECT count(*) AS n FROM ${table}`)))!.n;
  const tidyUp = () => tidy({ ...gateway, clock: systemClock, log });
  const pass = (days: number) => gateway.store.write(() => age(days * DAY_MS));
  const counts = (...tables: string[]) => Promise.all(tables.map(count));
  const agent = (sessionKey: string) => bench.post("agent", { message: "hi", sessionKey, wakeMode: "next-heartbeat" });
  await agent("hook:over");
  expect(await eventually(async () => chat.sent.length === 1 && (await count("session_events")) === 1, WAIT_MS)).toBe(
    true,
  );
  expect(await eventually(async () => (await count("runs WHERE reply = 'sent'")) === 1, WAIT_MS)).toBe(true);
  await agent("hook:open"); // its model does not answer
  expect(await eventually(async () => (await count("runs WHERE state = 'running'")) === 1, WAIT_MS)).toBe(true);
  await tidyUp();
  expect(await counts("deliveries", "outbox", "sessions")).toEqual([2, 1, 1]);
  await pass(3);
  await tidyUp();
  expect(await counts("deliveries", "runs", "outbox", "sessions")).toEqual([1, 1, 0, 1]);
  await pass(3);
  await tidyUp();
  expect(await counts("deliveries", "sessions", "session_entries")).toEqual([1, 0, 0]);
  expect(await bench.events()).toHaveLength(1);
  gate.resolve();
}, 120_000);

test("rounds run a minute after the start and then every hour, also after errors, until the end", async () => {
  await using bench = new AsyncDisposableStack();
  const clock = manualClock();
  const gateway = (await startGateway({ agents: quiet })).gateway;
  const rounds: number[] = [];
  const logged: string[] = [];
  const start = clock.now();
  const prune = async (): Promise<number> => {
    rounds.push(clock.now() - start);
    throw new Error("no disk");
  };
  const listening = { ...log, error: (message: string) => void logged.push(message) };
  const end = keepHouse({ ...gateway, deliveries: { prune }, clock, log: listening }, alone().lease("house"));
  bench.defer(end);
  for (const round of [1, 2, 3]) {
    clock.advance(round === 1 ? 60_000 : HOUR_MS);
    expect(await eventually(() => rounds.length === round && clock.due.length === 1, WAIT_MS)).toBe(true);
  }
  await end();
  clock.advance(DAY_MS);
  expect(rounds).toEqual([60_000, 60_000 + HOUR_MS, 60_000 + 2 * HOUR_MS]);
  expect(logged).toHaveLength(3);
}, 120_000);

test("the end aborts a running round, waits for it, and lets it write nothing more", async () => {
  const clock = manualClock();
  const { gateway } = await startGateway({ agents: quiet });
  const gate = Promise.withResolvers<number>();
  const signals: (AbortSignal | undefined)[] = [];
  const deliveries = { prune: (signal?: AbortSignal) => (signals.push(signal), gate.promise) };
  let writes = 0;
  const store = { ...gateway.store, write: () => Promise.resolve(writes++ as never) };
  const end = keepHouse({ ...gateway, store, deliveries, clock, log }, alone().lease("house"));
  clock.advance(60_000);
  expect(signals).toHaveLength(1);
  let isEnded = false;
  const ended = Promise.resolve(end()).then(() => (isEnded = true));
  await Bun.sleep(20);
  expect([isEnded, signals[0]?.aborted]).toEqual([false, true]);
  gate.resolve(200);
  await ended;
  expect([writes, clock.due]).toEqual([0, []]);
});

test("a stopping gateway closes its database after the running round", async () => {
  const clock = manualClock();
  const { gateway } = await startGateway({ agents: quiet }, { clock });
  const gate = Promise.withResolvers<number>();
  let rounds = 0;
  Object.assign(gateway.deliveries, { prune: () => (rounds++, gate.promise) });
  // a node of several notices later that it leads
  const hasBegun = (): boolean => (clock.advance(3_600_000), rounds > 0);
  expect(await eventually(hasBegun)).toBe(true);
  let isStopped = false;
  const stopped = gateway.stop(0).then(() => (isStopped = true));
  await Bun.sleep(200); // all other work is over by then
  expect([isStopped, await gateway.store.read(() => queryOne("SELECT 1 AS one"))]).toEqual([false, { one: 1 }]);
  gate.resolve(0);
  await stopped;
});
