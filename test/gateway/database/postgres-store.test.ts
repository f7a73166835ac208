import { SQL } from "bun";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { openPostgres } from "../../../src/gateway/database/postgres/postgres-store.ts";
import type { ServerOptions } from "../../../src/gateway/database/postgres/server.ts";
import {
  execute,
  insertAll,
  queryAll,
  queryEach,
  queryOne,
  type Transaction,
} from "../../../src/gateway/database/store.ts";
import { eventually } from "../../e2e/hearth.ts";
import { hasPostgres, startPostgres, type PostgresServer } from "../../postgres-server.ts";

const TABLE = { name: "words", sql: "CREATE TABLE words (word TEXT PRIMARY KEY, n BIGINT)" };
const put = (word: string, n = 0): Transaction<number> => execute("INSERT INTO words VALUES ($1, $2)", word, n);
const words = (): Transaction<{ word: string; n: number }[]> => queryAll("SELECT word, n FROM words ORDER BY word");

/** A statement that ends sessions, and waits until they are gone. */
const terminating = (condition: string): string =>
  `SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE ${condition}`;

describe.skipIf(!hasPostgres)("PostgreSQL (Debian's postgresql)", () => {
  let server: PostgresServer;
  let schemas = 0;
  beforeAll(async () => void (server = await startPostgres()), 120_000);
  afterAll(() => server?.remove(), 60_000);

  const open = (changes: Partial<ServerOptions> = {}) =>
    openPostgres({ url: server.url, schema: `test_${++schemas}`, connections: 4, name: "test", ...changes }, [TABLE]);

  test("concurrent scripts share a commit; one that throws, or has a text with U+0000, fails alone", async () => {
    const store = await open();
    const ends = await Promise.allSettled([
      store.write(() => put("one", 2 ** 52)),
      store.write(() => put("one")),
      store.write(() => put("nul \0 nul")),
      store.write(function* () {
        yield* put("half");
        throw new TypeError("mine");
      }),
      store.write(() => put("two")),
    ]);
    const said = ends.map((end) => (end.status === "fulfilled" ? end.value : (end.reason as Error).message));
    expect(said).toEqual([
      1,
      expect.stringContaining("unique"),
      "a text with the character U+0000 cannot be stored",
      "mine",
      1,
    ]);
    expect(await store.read(words)).toEqual([
      { word: "one", n: 2 ** 52 },
      { word: "two", n: 0 },
    ]);
    await store.close();
  });

  test("concurrent inputs share a script; one with U+0000 is refused alone, and a lone surrogate becomes U+FFFD", async () => {
    const store = await open();
    const given: number[] = [];
    function* add(inputs: readonly string[]): Transaction<readonly string[]> {
      given.push(inputs.length);
      const found = yield* queryEach<{ n: number }>(
        "SELECT n FROM words WHERE word = $1",
        inputs.map((word) => [word]),
      );
      const rows = inputs.map((word) => [word, 1]);
      yield* insertAll({ table: "words", columns: ["word", "n"], rows });
      return found.map((row, i) => `${inputs[i]} ${row?.n ?? "new"}`);
    }
    expect(await Promise.all(["a", "b", "half \ud83d"].map((word) => store.writeEach(add, word)))).toEqual([
      "a new",
      "b new",
      "half \ud83d new",
    ]);
    expect(given).toEqual([3]);
    const ends = await Promise.allSettled(["c", "nul \0 nul", "a", "d"].map((word) => store.writeEach(add, word)));
    expect(ends.map((end) => end.status)).toEqual(["fulfilled", "rejected", "rejected", "fulfilled"]);
    expect(given.slice(1)).toEqual([4, 1, 1, 1, 1]);
    expect((await store.read(words)).map(({ word }) => word)).toEqual(["a", "b", "c", "d", "half \ufffd"]);
    await store.close();
  });

  test("generic plans are used only for scripts of several inputs, also after a rollback; JIT is off", async () => {
    const store = await open();
    const mode = (): Transaction<{ mode: string } | undefined> =>
      queryOne(`SELECT current_setting('plan_cache_mode') || ', seqscan ' || current_setting('enable_seqscan') ||
        ', jit ' || current_setting('jit') AS mode`);
    function* each(inputs: readonly string[]): Transaction<readonly string[]> {
      if (inputs[0] === "fails") yield* put("twice");
      return [(yield* mode())!.mode];
    }
    const one = async () => (await store.write(mode))!.mode;
    const kept = "force_generic_plan, seqscan off, jit off";
    const made = "force_custom_plan, seqscan on, jit off";
    expect(await one()).toBe(made);
    await store.write(() => put("twice"));
    await expect(store.writeEach(each, "fails")).rejects.toThrow("unique");
    expect(await store.writeEach(each, "")).toBe(kept);
    expect(await store.writeEach(each, "")).toBe(kept);
    await expect(store.write(() => put("twice"))).rejects.toThrow("unique");
    expect(await one()).toBe(made);
    expect(await one()).toBe(made);
    await store.close();
  });

  test("an inserted text with U+0000 is refused alone", async () => {
    const store = await open();
    function* add(inputs: readonly string[]): Transaction<readonly string[]> {
      const rows = inputs.map((word) => [word, 1]);
      yield* insertAll({ table: "words", columns: ["word", "n"], rows });
      return inputs;
    }
    const ends = await Promise.allSettled(["a", "nul \0 nul", "b"].map((word) => store.writeEach(add, word)));
    expect(ends.map((end) => end.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect((await store.read(words)).map(({ word }) => word)).toEqual(["a", "b"]);
    await store.close();
  });

  test("the next process finds the data, and runs no migration twice", async () => {
    const first = await open({ schema: "kept" });
    await first.write(() => put("kept"));
    await first.close();
    const second = await open({ schema: "kept" });
    expect(await second.read(words)).toEqual([{ word: "kept", n: 0 }]);
    await second.close();
  });

  test("new migrations wait for writers; without new ones, opening waits for nobody", async () => {
    const schema = "migrated";
    await (await open({ schema })).close();
    const other = new SQL(server.url, { max: 1 });
    const session = await other.reserve();
    const numbers = `(7205102, ${Bun.hash.crc32(schema) | 0})`;
    await session.unsafe(`SELECT pg_advisory_lock_shared${numbers}`);
    await (await open({ schema })).close(); // there is nothing to do
    const more = [TABLE, { name: "more", sql: "CREATE TABLE more (word TEXT)" }];
    const told: string[] = [];
    const options = { url: server.url, schema, connections: 4, name: "test" };
    const migrated = openPostgres(options, more, (names) => void told.push(...names));
    const waiting = "SELECT count(*)::int AS n FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
    expect(await eventually(() => session.unsafe(waiting).then(([row]) => row.n === 1))).toBe(true);
    await session.unsafe(`SELECT pg_advisory_unlock_shared${numbers}`);
    await (await migrated).close();
    expect(told).toEqual(["more"]);
    session.release();
    await other.close();
  }, 60_000);

  test("the scripts of several processes are serializable", async () => {
    const stores = await Promise.all([1, 2, 3].map(() => open({ schema: "shared" })));
    const next = function* (): Transaction<number> {
      const { n } = (yield* queryOne<{ n: number }>("SELECT count(*) AS n FROM words"))!;
      yield* queryOne("SELECT pg_sleep(0.002)");
      return yield* put(`${n}`, n);
    };
    for (let round = 0; round < 5; round++) {
      await Promise.all(stores.flatMap((store) => [store.write(next), store.write(next)]));
    }
    expect((await stores[0]!.read(words)).length).toBe(30);
    await Promise.all(stores.map((store) => store.close()));
  });

  test("after a broken connection, the transaction is tried again on another one", async () => {
    const store = await open();
    await store.write(() => put("before"));
    await server.run(terminating("application_name = 'test'"));
    expect(await store.write(() => put("after"))).toBe(1);
    expect(await store.read(words)).toHaveLength(2);
    await store.close();
  });

  test.each([
    ["default_transaction_read_only = on", "expected a database that can be written, got one that is read-only"],
    ["synchronous_commit = off", "expected synchronous_commit to be on, got off: what is accepted could be lost"],
  ])("ALTER DATABASE … SET %s: the start fails with one line", async (setting, message) => {
    const name = setting.split(" ")[0]!;
    await server.run(`ALTER DATABASE postgres SET ${setting}`);
    try {
      await expect(open()).rejects.toMatchObject({ code: "storage", message: `the database does not fit: ${message}` });
    } finally {
      await server.run(`ALTER DATABASE postgres RESET ${name}`);
    }
  });

  test.each(["default_transaction_read_only = on", "synchronous_commit = off"])(
    "ALTER DATABASE … SET %s: sessions opened before it was reset are not reused",
    async (setting) => {
      const store = await open();
      await server.run(`ALTER DATABASE postgres SET ${setting}`);
      await server.run(terminating("application_name = 'test'"));
      await expect(store.write(() => put("meanwhile"))).rejects.toMatchObject({ code: "storage" });
      await expect(store.check()).rejects.toMatchObject({ code: "storage" });
      await server.run(`ALTER DATABASE postgres RESET ${setting.split(" ")[0]}`);
      for (let session = 1; session <= 4; session++) await store.write(() => put("again")).catch(() => {});
      expect(await store.write(() => put("after"))).toBe(1);
      await store.check();
      await store.close();
    },
    30_000,
  );

  test.each([
    ["mysql://root@localhost/x", "bad_request", /^database\.url: expected postgres:/],
    ["postgres://hearth@127.0.0.1:1/postgres", "storage", /^the database cannot be reached: /],
    ["", "storage", /^the database refuses the login: database "nowhere" does not exist$/],
  ])("the error of an unusable address is one line: %s", async (url, code, message) => {
    const opening = open({ url: url || server.url.replace("/postgres?", "/nowhere?") });
    await expect(opening).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
  });

  test("a statement that takes too long fails as a storage error, and the next write works", async () => {
    const store = await open();
    const slow = store.write(function* () {
      yield* execute("SET LOCAL statement_timeout = 50");
      yield* queryOne("SELECT pg_sleep(5)");
    });
    await expect(slow).rejects.toMatchObject({
      code: "storage",
      retryAfterMs: 5000,
      message: expect.stringMatching(/^the database is too slow: /),
    });
    expect(store.failure?.code).toBe("storage");
    expect(await store.write(() => put("next"))).toBe(1);
    expect(store.failure).toBeUndefined();
    await store.close();
  }, 60_000);

  test("locks, revoked rights, missing tables and refused logins fail as storage errors, for reads too", async () => {
    const schema = `test_${schemas + 1}`;
    await server.run("CREATE ROLE guest LOGIN; GRANT CREATE ON DATABASE postgres TO guest");
    const store = await open({ url: server.url.replace("hearth@", "guest@") });
    const expectRefused = async (message: RegExp): Promise<void> => {
      const reason = { code: "storage", retryAfterMs: 5000, message: expect.stringMatching(message) };
      const ends = await Promise.allSettled([store.read(words), store.write(() => put("refused"))]); // in either order
      expect(ends).toMatchObject([
        { status: "rejected", reason },
        { status: "rejected", reason },
      ]);
    };
    const holder = new SQL({ adapter: "postgres", path: server.socket, username: "hearth", database: "postgres" });
    await using held = await holder.reserve();
    await held.unsafe(`BEGIN; LOCK TABLE ${schema}.words IN ACCESS EXCLUSIVE MODE`).simple();
    await expectRefused(/^the database is too slow: another session holds a lock, .* lock timeout$/);
    await held.unsafe("ROLLBACK");
    await server.run(`REVOKE ALL ON ${schema}.words FROM guest`);
    await expectRefused(/^the database failed: permission denied for table words/);
    await server.run(`ALTER TABLE ${schema}.words RENAME TO others`);
    await expectRefused(/^the database failed: relation "words" does not exist/);
    await server.run("ALTER ROLE guest NOLOGIN");
    await server.run(terminating("usename = 'guest'"));
    await Promise.allSettled(Array.from({ length: 4 }, () => store.read(words))); // broken connections report errors
    await expectRefused(/^the database refuses the login: /);
    await store.close();
    await holder.close({ timeout: 0 });
  }, 60_000);

  test("reads and writes fail while the server is away, and committed data is there after its crash", async () => {
    const store = await open();
    await Promise.all(Array.from({ length: 50 }, (_, n) => store.write(() => put(`${n}`))));
    await server.stop("immediate");
    const away = { code: "storage", message: expect.stringMatching(/^the database /) };
    await expect(store.write(() => put("lost"))).rejects.toMatchObject(away);
    await expect(store.read(words)).rejects.toMatchObject(away);
    await server.start();
    expect(await store.write(() => put("again"))).toBe(1);
    expect(await store.read(words)).toHaveLength(51);
    await store.close();
  }, 60_000);
});
