/**
 * Connections to PostgreSQL that break around a commit, through a proxy that cuts them: data reported as stored is
 * stored exactly once.
 */
import { afterAll, afterEach, beforeAll, describe, expect, setSystemTime, spyOn, test } from "bun:test";
import { openPostgres } from "../../../src/gateway/database/postgres/postgres-store.ts";
import { insertAll, queryAll, queryOne, type Transaction } from "../../../src/gateway/database/store.ts";
import { startProxy, type Cut, type PostgresProxy } from "../../postgres-proxy.ts";
import { afterTest } from "../../cleanups.ts";
import { eventually } from "../../e2e/hearth.ts";
import { hasPostgres, startPostgres, type PostgresServer } from "../../postgres-server.ts";

const WAIT_MS = 60_000;
const TABLE = { name: "notes", sql: "CREATE TABLE notes (word TEXT)" };
const words = (): Transaction<{ word: string; n: number }[]> =>
  queryAll("SELECT word, count(*) AS n FROM notes GROUP BY word ORDER BY word");

/** Reads first, as transactions do. */
function* note(inputs: readonly string[]): Transaction<readonly string[]> {
  yield* queryOne("SELECT count(*) AS n FROM notes");
  const rows = inputs.map((word) => [word]);
  yield* insertAll({ table: "notes", columns: ["word"], rows });
  return inputs.map((word) => `${word} stored`);
}

/** The time limit of retries does not pass in this test, however slow the machine is. */
function stopTime(): void {
  const stopped = performance.now();
  const spy = spyOn(performance, "now").mockImplementation(() => stopped);
  afterTest(() => spy.mockRestore());
}

describe.skipIf(!hasPostgres)("commits whose connection breaks (Debian's postgresql)", () => {
  let server: PostgresServer;
  let proxy: PostgresProxy | undefined;
  let schemas = 0;
  beforeAll(async () => void (server = await startPostgres()), 120_000);
  afterEach(() => proxy?.stop());
  afterAll(() => server?.remove(), 60_000);

  async function openThroughProxy() {
    proxy = startProxy(server);
    const options = { url: proxy.url, schema: `cut_${++schemas}`, connections: 4, name: "cut" };
    return { store: await openPostgres(options, [TABLE]), schema: options.schema, proxy, cuts: proxy.cuts };
  }

  test.each<Cut>(["request", "answer"])(
    "with a lost %s are stored once and reported as stored",
    async (cut) => {
      const { store, cuts } = await openThroughProxy();
      stopTime();
      cuts.push(cut);
      expect(await store.writeEach(note, "grouped")).toBe("grouped stored");
      cuts.push(cut);
      const alone = store.write(() => insertAll({ table: "notes", columns: ["word"], rows: [["alone"]] }));
      expect(await alone).toBeUndefined();
      expect(cuts).toEqual([]);
      expect(await store.read(words)).toEqual([
        { word: "alone", n: 1 },
        { word: "grouped", n: 1 },
      ]);
      await store.close();
    },
    60_000,
  );

  test("in a busy store lose no write and store none twice", async () => {
    const { store, cuts } = await openThroughProxy();
    stopTime();
    const all = Array.from({ length: 60 }, (_, i) => `word ${100 + i}`);
    const senders = Array.from({ length: 6 }, async (_, sender) => {
      for (let i = sender; i < all.length; i += 6) {
        if (i % 5 === 0) cuts.push((["answer", "request", "late"] as const)[i % 3]!, undefined);
        expect(await store.writeEach(note, all[i]!)).toBe(`${all[i]} stored`);
      }
    });
    await Promise.all(senders);
    expect(await store.read(words)).toEqual(all.map((word) => ({ word, n: 1 })));
    await store.close();
  }, 60_000);

  test("to a silent server fail after one timeout, and no write is reported as stored", async () => {
    const { store, proxy: silenced } = await openThroughProxy();
    await store.writeEach(note, "before");
    silenced.isSilent = true;
    const outcome = [0, 50, 2000].map(async (ms, i) => {
      await Bun.sleep(ms);
      return store.writeEach(note, `word ${i}`).catch((error: Error) => error);
    });
    const refused = { code: "storage", message: "the database does not answer", retryAfterMs: 5000 };
    const [first, ...others] = await Promise.all(outcome);
    expect(first).toMatchObject(refused);
    for (const other of others) expect(other).toBe(first!); // one timeout, also for callers that arrived meanwhile
    expect(store.failure).toMatchObject(refused);
    silenced.isSilent = false;
    const isBack = (): Promise<boolean> =>
      store.writeEach(note, "after").then(
        () => true,
        () => false,
      );
    expect(await eventually(isBack, WAIT_MS)).toBe(true);
    expect((await store.read(words)).map(({ word }) => word)).toEqual(["after", "before"]);
    await store.close();
  }, 60_000);

  test("before a crash of the server are not reported as stored if their transaction id was given to another", async () => {
    const { store, proxy: cutting, schema } = await openThroughProxy();
    stopTime();
    await store.writeEach(note, "before");
    cutting.cuts.push("request");
    const isOver = Promise.withResolvers<void>();
    cutting.afterCut = async () => {
      await server.crashProcess(); // the transaction had written nothing yet, so its id is free
      const write = `INSERT INTO ${schema}.notes VALUES ('of another')`;
      await server.run(`DO $$ BEGIN FOR n IN 1..20 LOOP ${write}; COMMIT; END LOOP; END $$`);
      isOver.resolve();
    };
    const outcome = await store.writeEach(note, "lost").catch((error: Error) => error.message);
    const unknown = "the outcome of a commit is unknown";
    // if the server has just logged its next id, ours is not reused: the rollback is certain
    expect([unknown, "lost stored"]).toContain(outcome);
    await isOver.promise; // connections made meanwhile wait for it, and time out
    expect(await store.writeEach(note, "after")).toBe("after stored");
    const stored = ["after", "before", ...(outcome === unknown ? [] : ["lost"]), "of another"];
    expect((await store.read(words)).map(({ word }) => word)).toEqual(stored);
    await store.close();
  }, 60_000);

  test("to a server that stays away are waited for as long if this machine's clock is set back", async () => {
    const { store, proxy: cutting } = await openThroughProxy();
    cutting.cuts.push("answer");
    cutting.afterCut = async () => {
      cutting.stop();
      setSystemTime(Date.now() - 3_600_000);
    };
    try {
      const outcome = store.writeEach(note, "unknown").catch((error: Error) => error.message);
      const late = Bun.sleep(30_000).then(() => "nothing said");
      expect(await Promise.race([outcome, late])).toBe("the outcome of a commit is unknown");
    } finally {
      setSystemTime();
    }
    await store.close();
  }, 60_000);

  test("are not reported as stored while a synchronous standby is missing", async () => {
    const { store } = await openThroughProxy();
    await store.writeEach(note, "alone");
    await server.run("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    await server.run("SELECT pg_reload_conf()");
    let refusal: unknown;
    /** Each process of the server reloads the setting in its own time; earlier commits do not matter. */
    const isRefused = async (): Promise<boolean> => {
      const word = `no copy ${crypto.randomUUID()}`;
      refusal = await store.writeEach(note, word).then(
        () => undefined,
        (error: unknown) => error,
      );
      return refusal !== undefined;
    };
    try {
      expect(await eventually(isRefused, WAIT_MS)).toBe(true);
      expect(refusal).toMatchObject({ code: "storage", retryAfterMs: 5000 });
    } finally {
      await server.run("ALTER SYSTEM RESET synchronous_standby_names");
      await server.run("SELECT pg_reload_conf()");
    }
    expect(await store.writeEach(note, "again")).toBe("again stored");
    await store.close();
  }, 60_000);
});
