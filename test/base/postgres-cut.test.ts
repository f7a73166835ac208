/**
 * Connections to PostgreSQL that break around a commit, through a proxy that cuts them: whoever is told that something
 * is stored finds it there, once.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { openPostgres } from "../../src/base/postgres/postgres-store.ts";
import { insertAll, queryAll, queryOne, whole, type Script } from "../../src/base/store.ts";
import { hasPostgres, startPostgres, type PostgresServer } from "../postgres-server.ts";

const TABLE = { name: "notes", sql: "CREATE TABLE notes (word TEXT)" };
const words = (): Script<{ word: string; n: number }[]> =>
  queryAll("SELECT word, count(*) AS n FROM notes GROUP BY word ORDER BY word");

/** Reads first, as scripts do; what it stores goes with its commit. */
function* note(inputs: readonly string[]): Script<readonly string[]> {
  yield* queryOne("SELECT count(*) AS n FROM notes");
  const rows = inputs.map((word) => [word]);
  yield* whole(insertAll({ table: "notes", columns: ["word"], rows }), { isLast: true });
  return inputs.map((word) => `${word} stored`);
}

/** `request`: a commit does not reach the server; `answer`: its answer does not come back. */
type Cut = "request" | "answer";

interface Proxy {
  readonly port: number;
  /** What happens to the next commits; undefined: they pass. */
  readonly cuts: (Cut | undefined)[];
  stop(): void;
}

interface Line {
  server?: Bun.Socket<unknown>;
  readonly waiting: Uint8Array[];
}

function startProxy(socketPath: string): Proxy {
  const cuts: (Cut | undefined)[] = [];
  let underway: Cut | undefined;
  const listener = Bun.listen<Line>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(client) {
        client.data = { waiting: [] };
        const server = Bun.connect({
          unix: socketPath,
          socket: {
            open(socket) {
              client.data.server = socket;
              for (const data of client.data.waiting) socket.write(data);
            },
            data(socket, data) {
              if (underway === "answer" && data.includes("COMMIT\0")) {
                underway = undefined;
                socket.end();
                client.end();
              } else client.write(data);
            },
            close: () => void client.end(),
            error: () => void client.end(),
          },
        });
        server.catch(() => client.end());
      },
      data(client, data) {
        if (data.includes("COMMIT\0")) underway = cuts.shift();
        if (underway === "request") {
          underway = undefined;
          client.data.server?.end();
          client.end();
        } else if (client.data.server) client.data.server.write(data);
        else client.data.waiting.push(data);
      },
      close: (client) => void client.data.server?.end(),
      error: () => {},
    },
  });
  return { port: listener.port, cuts, stop: () => listener.stop(true) };
}

describe.skipIf(!hasPostgres)("commits whose connection breaks (Debian's postgresql)", () => {
  let server: PostgresServer;
  let proxy: Proxy | undefined;
  let schemas = 0;
  beforeAll(async () => void (server = await startPostgres()), 120_000);
  afterEach(() => proxy?.stop());
  afterAll(() => server?.remove(), 60_000);

  async function openThroughProxy() {
    proxy = startProxy(`${/host=(.*)$/.exec(server.url)![1]}/.s.PGSQL.5432`);
    const url = `postgres://hearth@127.0.0.1:${proxy.port}/postgres`;
    const store = await openPostgres({ url, schema: `cut_${++schemas}`, connections: 4, name: "cut" }, [TABLE]);
    return { store, cuts: proxy.cuts };
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
});
