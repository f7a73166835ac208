/**
 * Connections to PostgreSQL that break around a commit, through a proxy that cuts them: whoever is told that something
 * is stored finds it there, once.
 */
import { SQL } from "bun";
import { afterAll, afterEach, beforeAll, describe, expect, setSystemTime, test } from "bun:test";
import { openPostgres } from "../../src/base/postgres/postgres-store.ts";
import {
  insertAll,
  queryAll,
  queryEach,
  queryOne,
  whole,
  type Insert,
  type Script,
  type Store,
  type Suppose,
} from "../../src/base/store.ts";
import { startProxy, type Cut, type PostgresProxy } from "../postgres-proxy.ts";
import { eventually } from "../e2e/hearth.ts";
import { hasPostgres, startPostgres, type PostgresServer } from "../postgres-server.ts";

const WAIT_MS = 60_000;
const TABLE = { name: "notes", sql: "CREATE TABLE notes (word TEXT); CREATE TABLE kept (word TEXT PRIMARY KEY)" };
const words = (): Script<{ word: string; n: number }[]> =>
  queryAll("SELECT word, count(*) AS n FROM notes GROUP BY word ORDER BY word");

/** Reads first, as scripts do; what it stores goes with its commit. */
function* note(inputs: readonly string[]): Script<readonly string[]> {
  yield* queryOne("SELECT count(*) AS n FROM notes");
  const rows = inputs.map((word) => [word]);
  yield* whole(insertAll({ table: "notes", columns: ["word"], rows }), { isLast: true });
  return inputs.map((word) => `${word} stored`);
}

const keeping = (words: readonly string[]): Insert => ({
  table: "kept",
  columns: ["word"],
  rows: words.map((word) => [word]),
});

/** Stores what has a key, and would find out before what it can suppose. */
function* keep(words: readonly string[]): Script<readonly string[]> {
  yield* whole(insertAll(keeping(words)), { isLast: true });
  return words.map((word) => `${word} kept`);
}

/** As `keep`, for what may be there: who sends it again is answered as before. */
function* find(words: readonly string[]): Script<readonly string[]> {
  const found = yield* queryEach(
    "SELECT 1 AS found FROM kept WHERE word = $1",
    words.map((word) => [word]),
  );
  return found.some((row) => row) ? words.map((word) => `${word} found`) : yield* keep(words);
}

const supposeKept: Suppose<string, string> = (words) => ({
  unless: [],
  inserts: [keeping(words)],
  isBesideOthers: false,
  proofOf: (at) => ({ text: "SELECT 1 FROM kept WHERE word = $1", values: [words[at]!] }),
  results: words.map((word) => `${word} supposed`),
});

const kept = (): Script<{ word: string }[]> => queryAll("SELECT word FROM kept WHERE word LIKE 'word %' ORDER BY word");

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
    "the %s of one is lost: it is stored once, and its writer hears so",
    async (cut) => {
      const { store, cuts } = await openThroughProxy();
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

  test("one after the other of a busy store: nothing is lost, nothing is stored twice", async () => {
    const { store, cuts } = await openThroughProxy();
    const all = Array.from({ length: 60 }, (_, i) => `word ${100 + i}`);
    const senders = Array.from({ length: 6 }, async (_, sender) => {
      for (let i = sender; i < all.length; i += 6) {
        if (i % 5 === 0) cuts.push(i % 2 === 0 ? "answer" : "request", undefined);
        expect(await store.writeEach(note, all[i]!)).toBe(`${all[i]} stored`);
      }
    });
    await Promise.all(senders);
    expect(await store.read(words)).toEqual(all.map((word) => ({ word, n: 1 })));
    await store.close();
  }, 60_000);

  /** Resolves once what is supposed is stored without asking: there is a connection for it. */
  async function supposing(store: Store): Promise<void> {
    const isSupposing = async (): Promise<boolean> => {
      const heard = store.writeEach(keep, `before ${crypto.randomUUID()}`, supposeKept);
      return (await heard.catch(() => "away")).endsWith("supposed");
    };
    expect(await eventually(isSupposing, WAIT_MS)).toBe(true);
  }

  test.each<Cut>(["request", "answer"])(
    "the %s of what is supposed is lost: it is stored once",
    async (cut) => {
      const { store, cuts } = await openThroughProxy();
      await supposing(store);
      const ends = ["word 1", "word 2", "word 3"].map(async (word) => {
        if (word === "word 3") await Promise.resolve(); // another batch
        return store.writeEach(find, word, supposeKept);
      });
      cuts.push(cut);
      const heard = cut === "answer" ? /^word \d supposed$/ : /^word \d kept$/;
      for (const end of await Promise.all(ends.slice(0, 2))) expect(end).toMatch(heard);
      await ends[2];
      expect(cuts).toEqual([]);
      expect(await store.read(kept)).toEqual([{ word: "word 1" }, { word: "word 2" }, { word: "word 3" }]);
      await store.close();
    },
    60_000,
  );

  test.each([
    ["a script that stores it again", keep],
    ["a script that would find it, and take it for another's", find],
  ])(
    "what the server does later than its client hears is stored once, so told: %s",
    async (_, script) => {
      const { store, cuts, schema, proxy: late } = await openThroughProxy();
      await supposing(store);
      const other = new SQL(server.url, { max: 1 });
      const session = await other.reserve();
      const lock = `${7_205_102}, ${Bun.hash.crc32(schema) | 0}`; // of those that write
      await session.unsafe(`SELECT pg_advisory_lock(${lock})`);
      const waiting = `SELECT count(*)::int AS n FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`;
      const areWaiting = (n: number) => eventually(() => session.unsafe(waiting).then(([row]) => row.n === n), WAIT_MS);
      late.beforeLate = async () => void expect(await areWaiting(1)).toBe(true);
      cuts.push("late");
      const told = store.writeEach(script, "word 1", supposeKept);
      expect(await areWaiting(2)).toBe(true); // it, and the script
      await session.unsafe(`SELECT pg_advisory_unlock(${lock})`);
      expect(await told).toBe("word 1 supposed");
      expect(await store.read(kept)).toEqual([{ word: "word 1" }]);
      session.release();
      await other.close();
      await store.close();
    },
    60_000,
  );

  test("a server that falls silent is given up once, and nobody is told that something is stored", async () => {
    const { store, proxy: silenced } = await openThroughProxy();
    await supposing(store);
    silenced.isSilent = true;
    const told = [0, 50, 5000].map(async (ms, i) => {
      await Bun.sleep(ms);
      return store.writeEach(keep, `word ${i}`, supposeKept).catch((error: Error) => error);
    });
    const late = Bun.sleep(20_000).then(() => []); // 12 s, also for those who came in meanwhile
    const refused = { code: "storage", message: "the database does not answer", retryAfterMs: 5000 };
    expect(await Promise.race([Promise.all(told), late])).toMatchObject([refused, refused, refused]);
    expect(store.failure).toMatchObject(refused);
    silenced.isSilent = false;
    await supposing(store);
    expect(await store.read(kept)).toEqual([]);
    await store.close();
  }, 60_000);

  test("connections of a busy store that supposes break one after the other: all is stored once", async () => {
    const { store, cuts } = await openThroughProxy();
    await supposing(store);
    const all = Array.from({ length: 90 }, (_, i) => `word ${100 + i}`);
    const senders = Array.from({ length: 6 }, async (_, sender) => {
      for (let i = sender; i < all.length; i += 6) {
        if (i % 15 === 0) cuts.push((["answer", "request", "late"] as const)[(i / 15) % 3], undefined, undefined);
        expect(await store.writeEach(keep, all[i]!, supposeKept)).toMatch(`${all[i]} `);
      }
    });
    await Promise.all(senders);
    expect((await store.read(kept)).map(({ word }) => word)).toEqual(all);
    await store.close();
  }, 60_000);

  test("a server whose process crashed has given the number away: what was lost is not taken for stored", async () => {
    const { store, proxy: cutting, schema } = await openThroughProxy();
    await store.writeEach(note, "before");
    cutting.cuts.push("request");
    cutting.afterCut = async () => {
      await server.crashProcess(); // the transaction had written nothing yet, so that its number is free
      for (let n = 0; n < 20; n++) await server.run(`INSERT INTO ${schema}.notes VALUES ('of another')`);
    };
    const unknown = "the database does not say whether a commit was made";
    const told = await store.writeEach(note, "lost").catch((error: Error) => error.message);
    // where the server has just logged its next number, ours is not given again: it is known to be undone
    expect([unknown, "lost stored"]).toContain(told);
    expect(await store.writeEach(note, "after")).toBe("after stored");
    const stored = ["after", "before", ...(told === unknown ? [] : ["lost"]), "of another"];
    expect((await store.read(words)).map(({ word }) => word)).toEqual(stored);
    await store.close();
  }, 60_000);

  test("a server that is away afterwards is waited for as long whatever happens to this machine's clock", async () => {
    const { store, proxy: cutting } = await openThroughProxy();
    cutting.cuts.push("answer");
    cutting.afterCut = async () => {
      cutting.stop();
      setSystemTime(Date.now() - 3_600_000);
    };
    try {
      const told = store.writeEach(note, "unknown").catch((error: Error) => error.message);
      const late = Bun.sleep(30_000).then(() => "nothing said");
      expect(await Promise.race([told, late])).toBe("the database does not say whether a commit was made");
    } finally {
      setSystemTime();
    }
    await store.close();
  }, 60_000);

  test.each<[string, Suppose<string, string> | undefined]>([
    ["asked", undefined],
    ["supposed", supposeKept],
  ])(
    "a commit that waits for its copy is not answered before, however long that takes: %s",
    async (_, suppose) => {
      const { store } = await openThroughProxy();
      await (suppose ? supposing(store) : store.writeEach(note, "alone"));
      await server.run("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
      await server.run("SELECT pg_reload_conf()");
      let refusal: unknown;
      /** Each process of the server takes up the setting in its own time: what is stored before that is no matter. */
      const isRefused = async (): Promise<boolean> => {
        const word = `no copy ${crypto.randomUUID()}`;
        refusal = await store.writeEach(suppose ? keep : note, word, suppose).then(
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
    },
    60_000,
  );
});
