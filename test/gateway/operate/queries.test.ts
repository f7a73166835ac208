/** The gateway's statements: no cost grows with the finished rows that are kept. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { afterEach, expect, spyOn, test } from "bun:test";
import { eventually } from "../../e2e/hearth.ts";
import { postgresUrl } from "../../stores.ts";
import { quiet, startChat, startGateway, TOKEN } from "./fixtures.ts";

const WAIT_MS = 60_000;
/** Tables of one row, or one per migration or crash since the last start. */
const SMALL = ["open_runs", "migrations", "workers", "pauses"];

let stopRecording = (): void => {};
afterEach(() => stopRecording());

/** Every statement that is prepared from now on. */
function recordStatements(): ReadonlySet<string> {
  const statements = new Set<string>();
  const prepare = Database.prototype.prepare;
  const spy = spyOn(Database.prototype, "prepare").mockImplementation(function (this: Database, sql: string) {
    statements.add(sql);
    return prepare.call(this, sql);
  } as typeof prepare);
  stopRecording = () => spy.mockRestore();
  return statements;
}

/** Finds statements that read a table from end to end instead of by an index of open rows. */
function scansOf(db: Database, sql: string): string[] {
  const plan = db.prepare<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${sql}`).all();
  const tables = db.prepare<{ name: string }, []>("SELECT name FROM sqlite_master WHERE type = 'table'").all();
  const large = tables.map(({ name }) => name).filter((name) => !SMALL.includes(name));
  return plan.flatMap(({ detail }) => (large.some((name) => detail === `SCAN ${name}`) ? [`${detail}: ${sql}`] : []));
}

const isSqlite = postgresUrl === undefined; // the plans are SQLite's

test.skipIf(!isSqlite)(
  "wakes, turns and replies scan no table of history",
  async () => {
    const statements = recordStatements();
    const chat = startChat();
    const bench = await startGateway({
      hooks: { enabled: true, token: TOKEN },
      channels: { telegram: { botToken: "123:abc", baseUrl: chat.url, defaultTo: "42" } },
      agents: quiet,
    });
    using db = new Database(join(bench.folder, "gateway.db"), { readonly: true });
    await bench.post("wake", { text: "disk full", mode: "now" });
    await bench.post("agent", { message: "hi", sessionKey: "hook:a" });
    expect(await eventually(() => chat.sent.length === 1, WAIT_MS)).toBe(true);
    const isOver = async (): Promise<boolean> => {
      const { byState, pendingReplies } = await bench.gateway.deliveries.stats();
      return Object.keys(byState).length === 0 && pendingReplies === 0;
    };
    expect(await eventually(isOver, WAIT_MS)).toBe(true);
    stopRecording();
    expect(statements.size).toBeGreaterThan(30);
    expect([...statements].flatMap((sql) => scansOf(db, sql))).toEqual([]);
  },
  120_000,
);
