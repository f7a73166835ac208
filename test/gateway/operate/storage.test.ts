/** The start on a database file: tables of an earlier version, and empty files. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { systemClock } from "../../../src/base/clock.ts";
import { makeLogger } from "../../../src/base/log.ts";
import { agentMigrations } from "../../../src/gateway/agent/tables.ts";
import { openDatabase } from "../../../src/gateway/database/database.ts";
import { makeSnapshot } from "../../../src/gateway/operate/snapshot.ts";
import { openStorage } from "../../../src/gateway/operate/storage.ts";

let home: string;
let file: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "hearth-storage-"));
  file = join(home, "gateway.db");
});
afterEach(() => rmSync(home, { recursive: true }));

/** Opens and closes it; returns the log. */
async function open(): Promise<string[]> {
  const lines: string[] = [];
  const log = makeLogger({ write: (line) => void lines.push(line), now: Date.now, debug: false });
  const snapshot = makeSnapshot(undefined, { folder: home, apiKeys: [] });
  const storage = await openStorage({ home, snapshot: () => snapshot, clock: systemClock, log });
  await storage.close();
  return lines;
}

test("a new database is created and opened again without log lines", async () => {
  expect([...(await open()), ...(await open())]).toEqual([]);
});

test("tables of an earlier version are updated, and one line of the log names the steps", async () => {
  openDatabase(file, agentMigrations).close();
  const lines = await open();
  expect(lines).toHaveLength(1);
  const { level, msg, steps } = JSON.parse(lines[0]!);
  expect({ level, msg }).toEqual({ level: "info", msg: "the gateway's tables were updated for this version" });
  expect(steps).toContain("hooks: runs");
  expect(steps).not.toContain(agentMigrations[0]!.name);
  expect(await open()).toEqual([]);
});

test("an empty file becomes a new database, with a warning", async () => {
  await open();
  writeFileSync(file, "");
  const [line, ...more] = await open();
  expect(line).toContain("the database file was empty");
  expect(more).toEqual([]);
  expect(await open()).toEqual([]);
});

test.each([
  ["an empty file", (): void => writeFileSync(file, ""), "got a file of 0 bytes"],
  ["no file", (): void => rmSync(file, { force: true }), "got none"],
])("%s beside a write-ahead log is refused, and the log is kept", async (_, damage, got) => {
  await open();
  writeFileSync(`${file}-wal`, "x".repeat(5000));
  damage();
  await expect(open()).rejects.toThrow(`${got} beside its write-ahead log of 5000 bytes: restore both`);
  expect(readFileSync(`${file}-wal`).length).toBe(5000);
});
