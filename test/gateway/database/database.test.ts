import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDatabase, Writer } from "../../../src/gateway/database/database.ts";

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "hearth-db-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const TABLE = { name: "words", sql: "CREATE TABLE words (word TEXT PRIMARY KEY) STRICT" };
const words = (db: Database): string[] =>
  db
    .query<{ word: string }, []>("SELECT word FROM words ORDER BY word")
    .all()
    .map((row) => row.word);

test("a migration runs once, and a later one on top", () => {
  const path = join(folder, "deep", "gateway.db");
  openDatabase(path, [TABLE]).run("INSERT INTO words VALUES ('kept')");
  const again = openDatabase(path, [TABLE, { name: "more", sql: "INSERT INTO words VALUES ('new')" }]);
  expect(words(again)).toEqual(["kept", "new"]);
});

test.skipIf(process.platform === "win32")(
  "the database's files are readable by their owner only, also if they existed before",
  () => {
    const path = join(folder, "gateway.db");
    const modes = (): number[] => ["", "-wal", "-shm"].map((end) => statSync(path + end).mode & 0o777);
    const first = openDatabase(path, [TABLE]);
    expect(modes()).toEqual([0o600, 0o600, 0o600]);
    for (const end of ["", "-wal", "-shm"]) chmodSync(path + end, 0o644);
    const second = openDatabase(path, [TABLE]);
    expect(modes()).toEqual([0o600, 0o600, 0o600]);
    for (const db of [first, second]) db.close();
  },
);

test("a migration that fails is undone", () => {
  const path = join(folder, "gateway.db");
  expect(() => openDatabase(path, [TABLE, { name: "bad", sql: "INSERT INTO nowhere VALUES (1)" }])).toThrow("nowhere");
  expect(words(openDatabase(path, [TABLE]))).toEqual([]);
});

test("the error of a file that is not a database names it", () => {
  const path = join(folder, "gateway.db");
  writeFileSync(path, "x".repeat(8192));
  expect(() => openDatabase(path, [])).toThrow(`cannot open the database '${path}'`);
});

test("concurrent writes share a commit, and one that fails does not affect the others", async () => {
  const path = join(folder, "gateway.db");
  const db = openDatabase(path, [TABLE]);
  const writer = new Writer(db);
  const insert = (word: string) =>
    writer.write((at) => {
      at.run("INSERT INTO words VALUES (?)", [word]);
      return word.length;
    });
  const failing = writer.write((at) => {
    at.run("INSERT INTO words VALUES ('half')");
    throw new Error("mine");
  });
  const results = await Promise.allSettled([insert("one"), insert("one"), failing, insert("three")]);
  expect(results.map((result) => (result.status === "fulfilled" ? result.value : String(result.reason)))).toEqual([
    3,
    expect.stringContaining("UNIQUE"),
    "Error: mine",
    5,
  ]);
  // another connection sees the promised data
  expect(words(new Database(path, { readonly: true }))).toEqual(["one", "three"]);
});

test("a write fails if its commit fails", async () => {
  const db = openDatabase(join(folder, "gateway.db"), [TABLE]);
  const writer = new Writer(db);
  const lost = writer.write((at) => at.run("INSERT INTO words VALUES ('lost')"));
  db.close();
  await expect(lost).rejects.toThrow("the database cannot be written");
});

test("if the disk is full for one of several writes, all of them fail, and none is stored", async () => {
  const db = openDatabase(join(folder, "gateway.db"), [TABLE]);
  const writer = new Writer(db);
  const { page_count: pages } = db.query<{ page_count: number }, []>("PRAGMA page_count").get()!;
  db.run(`PRAGMA max_page_count = ${pages + 2}`);
  const insert = (word: string) => writer.write((at) => at.run("INSERT INTO words VALUES (?)", [word]));
  const results = await Promise.allSettled([insert("before"), insert("x".repeat(100_000)), insert("behind")]);
  expect(results.map((result) => String((result as PromiseRejectedResult).reason))).toEqual(
    Array(3).fill(expect.stringContaining("the database cannot be written: database or disk is full")),
  );
  expect(words(db)).toEqual([]);
  await insert("later");
  expect(words(db)).toEqual(["later"]);
});

test("a write fails if it could not be synced to the disk", async () => {
  const path = join(folder, "gateway.db");
  const writer = new Writer(openDatabase(path, [TABLE]));
  rmSync(`${path}-wal`);
  const written = writer.write((at) => at.run("INSERT INTO words VALUES ('unsynced')"));
  await expect(written).rejects.toThrow("the database cannot be written: ENOENT");
});

test("a write waits for another process that writes, and blocks nothing else meanwhile", async () => {
  const path = join(folder, "gateway.db");
  const db = openDatabase(path, [TABLE]);
  const writer = new Writer(db);
  const other = new Database(path);
  other.run("BEGIN IMMEDIATE");
  const insert = (word: string) => writer.write((at) => at.run("INSERT INTO words VALUES (?)", [word]));
  const first = insert("first");
  expect(db.query("PRAGMA busy_timeout").get()).toEqual({ timeout: 0 }); // SQLite's own wait would take this thread
  for (let turns = 0; turns < 3; turns++) await new Promise(setImmediate);
  const second = insert("second");
  other.run("ROLLBACK");
  await Promise.all([first, second]);
  expect(words(other)).toEqual(["first", "second"]);
});

test("close waits for pending writes", async () => {
  const path = join(folder, "gateway.db");
  const db = openDatabase(path, [TABLE]);
  const writer = new Writer(db);
  let written = 0;
  for (const word of ["one", "two"]) {
    void writer.write((at) => at.run("INSERT INTO words VALUES (?)", [word])).then(() => written++);
  }
  await writer.close();
  expect(written).toBe(2);
});

test("a transaction holds the write lock from its beginning", async () => {
  const path = join(folder, "gateway.db");
  const writer = new Writer(openDatabase(path, [TABLE]));
  const other = new Database(path);
  other.run("PRAGMA busy_timeout = 0");
  const counted = await writer.write((at) => {
    const before = words(at).length;
    expect(() => other.run("INSERT INTO words VALUES ('theirs')")).toThrow("locked");
    at.run("INSERT INTO words VALUES ('ours')");
    return before;
  });
  expect([counted, words(other)]).toEqual([0, ["ours"]]);
});
