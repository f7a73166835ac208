/** A gateway's status; frequent probes of whether its database can be written. */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { systemClock } from "../../../src/base/clock.ts";
import { openDatabase } from "../../../src/gateway/database/database.ts";
import { execute, queryOne } from "../../../src/gateway/database/store.ts";
import { checkWritable } from "../../../src/gateway/operate/status.ts";
import { deliveryMigrations } from "../../../src/gateway/hooks/queue/deliveries/tables.ts";
import { eventually } from "../../e2e/hearth.ts";
import { openStore } from "../../stores.ts";
import { quiet, startChat, startGateway, TOKEN } from "./fixtures.ts";

const WAIT_MS = 60_000;

test("a health probe writes nothing, and fails after a failed commit until one succeeds", async () => {
  const home = mkdtempSync(join(tmpdir(), "hearth-status-"));
  const path = join(home, "gateway.db");
  const store = openStore(deliveryMigrations, path);
  try {
    const change = () => store.write(() => execute("DELETE FROM runs"));
    await store.write(() => execute("INSERT INTO items VALUES ('a', 'b', 'c', 1)"));
    const size = statSync(`${path}-wal`).size;
    for (let probe = 0; probe < 50; probe++) await checkWritable(store, { folder: home });
    expect(statSync(`${path}-wal`).size).toBe(size);

    const other = openDatabase(path, []);
    await store.read(() => queryOne("PRAGMA busy_timeout = 1"));
    other.run("BEGIN IMMEDIATE"); // blocks other commits
    await expect(change()).rejects.toMatchObject({ code: "storage" });
    await expect(checkWritable(store, { folder: home })).rejects.toMatchObject({ code: "storage" });
    other.run("ROLLBACK");
    other.close();
    await checkWritable(store, { folder: home });
  } finally {
    await store.close();
    rmSync(home, { recursive: true, force: true });
  }
});

test("a heartbeat without a target is reported until it has one", async () => {
  const chat = startChat();
  const hooks = { enabled: true, token: TOKEN };
  const heartbeat = (settings: object) => ({ defaults: { heartbeat: { every: 0, ...settings } } });
  const telegram = { botToken: "123:abc", baseUrl: chat.url };
  const bench = await startGateway({ hooks, channels: { telegram }, agents: quiet });
  const becomes = (expected: "unheard" | undefined): Promise<boolean> =>
    eventually(async () => (await bench.gateway.status()).heartbeat === expected, WAIT_MS);
  expect((await bench.gateway.status()).heartbeat).toBeUndefined(); // the answers are not wanted anywhere
  for (const lost of [{ target: "slak" }, { target: "slack" }, { target: "telegram", to: "no chat" }, {}]) {
    bench.configure({ hooks, channels: { telegram }, agents: heartbeat(lost) });
    expect(await becomes("unheard")).toBe(true);
    bench.configure({ hooks, channels: { telegram }, agents: heartbeat({ target: "tg", to: "42" }) });
    expect(await becomes(undefined)).toBe(true);
  }
  bench.configure({ hooks, channels: { telegram }, agents: heartbeat({}) });
  expect(await becomes("unheard")).toBe(true);
  const presetSettings = { alertmanager: { channel: "telegram", to: "42" } }; // every message has a recipient
  const own = { ...hooks, presets: ["alertmanager"], presetSettings };
  bench.configure({ hooks: own, channels: { telegram }, agents: heartbeat({}) });
  expect(await becomes(undefined)).toBe(true);
  bench.configure({ hooks, channels: { telegram: { ...telegram, defaultTo: "42" } }, agents: heartbeat({}) });
  expect(await eventually(() => bench.gateway.channels.channels.get("telegram")?.defaultTo === "42", WAIT_MS)).toBe(
    true,
  );
  expect(await becomes(undefined)).toBe(true);
}, 240_000);

test("a chat platform that is down for minutes is a finding, until it takes messages again", async () => {
  const chat = startChat();
  let [isUp, aheadMs] = [false, 0];
  chat.answer = () =>
    isUp ? Response.json({ ok: true, result: { message_id: 1 } }) : new Response("", { status: 502 });
  const telegram = { botToken: "123:abc", baseUrl: chat.url, defaultTo: "42", spacingMs: 0 };
  const clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
  const config = { hooks: { enabled: true, token: TOKEN }, channels: { telegram }, agents: quiet };
  const bench = await startGateway(config, { clock });
  await bench.post("agent", { message: "hi", channel: "telegram", wakeMode: "next-heartbeat" });
  expect(await eventually(() => bench.gateway.outbox.troubled.length === 1, WAIT_MS)).toBe(true);
  expect(await bench.gateway.status()).not.toHaveProperty("findings");
  aheadMs = 7 * 60_000;
  const finding =
    /^channel 'telegram' takes no messages, for \d+ min: its replies wait, a day at most: see hearth channels check$/;
  expect((await bench.gateway.status()).findings).toEqual([expect.stringMatching(finding)]);
  isUp = true;
  aheadMs *= 2;
  bench.gateway.outbox.poke();
  expect(await eventually(async () => (await bench.gateway.status()).findings === undefined, WAIT_MS)).toBe(true);
}, 120_000);
