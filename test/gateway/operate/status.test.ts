/** A gateway's status; frequent probes of whether its database can be written. */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "bun:test";
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
