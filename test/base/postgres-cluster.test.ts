/** Nodes that share a database, as their locks tell the others of them. */
import { SQL } from "bun";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { joinCluster } from "../../src/base/postgres/cluster.ts";
import { clusterMigrations } from "../../src/base/postgres/cluster-tables.ts";
import { openPostgres } from "../../src/base/postgres/postgres-store.ts";
import { eventually } from "../e2e/hearth.ts";
import { hasPostgres, startPostgres, type PostgresServer } from "../postgres-server.ts";

const WAIT_MS = 30_000;
const SCHEMA = "nodes_of_a_test";
/** A lock that is free for so long is missed. */
const MISSED_MS = 200;
const QUICK_MS = 90;
const LOCKED =
  "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted AND objid = $1::int::oid";

describe.skipIf(!hasPostgres)("nodes (Debian's postgresql)", () => {
  let server: PostgresServer;
  let sql: SQL;
  beforeAll(async () => {
    server = await startPostgres({ syncs: false });
    sql = new SQL({ path: server.socket, username: "hearth", database: "postgres", max: 1 });
  }, 120_000);
  afterAll(async () => {
    await sql?.close();
    await server?.remove();
  }, 60_000);

  /** @param said what it logs */
  async function join(name: string, said: string[] = []) {
    const options = { url: server.url, schema: SCHEMA, connections: 3, name: "test" };
    const store = await openPostgres(options, clusterMigrations);
    const note = (message: string): void => void said.push(message);
    const log = { debug: note, info: note, warn: note, error: note };
    const cluster = await joinCluster(store, { ...options, facts: () => ({ name, version: "1", digest: "d" }), log });
    return {
      get number(): number {
        return Number(/#(\d+)$/.exec(cluster.me)![1]);
      },
      cluster,
      async leave(): Promise<void> {
        await cluster.leave();
        await store.close();
      },
    };
  }

  const holderOf = async (number: number): Promise<number | undefined> =>
    ((await sql.unsafe(LOCKED, [number])) as { pid: number }[])[0]?.pid;

  test("one whose line breaks has its lock again before the others miss it", async () => {
    const said: string[] = [];
    const node = await join("one", said);
    const other = await join("two", said);
    const tookMs: number[] = [];
    for (let i = 0; i < 5 || (i < 25 && Math.min(...tookMs) >= QUICK_MS); i++) {
      let pid: number | undefined;
      const before = said.length;
      expect(await eventually(async () => (pid = await holderOf(node.number)) !== undefined, WAIT_MS)).toBe(true);
      const begun = performance.now();
      await sql.unsafe("SELECT pg_terminate_backend($1)", [pid]);
      const isBack = async () => ![pid, undefined].includes(await holderOf(node.number));
      while (!(await isBack()) && performance.now() - begun < WAIT_MS) await Bun.sleep(2);
      tookMs.push(performance.now() - begun);
      // a machine that is too busy to make it a connection in time looks like one that is gone
      if (tookMs.at(-1)! < MISSED_MS) expect(said.slice(before)).toEqual([]);
    }
    expect(Math.min(...tookMs)).toBeLessThan(QUICK_MS); // its next look would be the one after
    expect(said.slice(0, 2)).toEqual(["cluster: this node is here", "cluster: this node is here"]);
    await node.leave();
    await other.leave();
  }, 120_000);

  test("one whose lock nobody keeps is given up, once, and what it led is free", async () => {
    const said: string[] = [];
    const node = await join("one", said);
    const text = `INSERT INTO ${SCHEMA}.nodes (name, version, digest, digest_at, started_at, seen_at)
      SELECT 'gone', '1', 'd', seen_at, seen_at, seen_at FROM ${SCHEMA}.nodes RETURNING number`;
    const [gone] = (await sql.unsafe(text)) as { number: number }[];
    const lease = `INSERT INTO ${SCHEMA}.leases SELECT 'duty', $1, 1, seen_at, seen_at + 3600000 FROM ${SCHEMA}.nodes LIMIT 1`;
    await sql.unsafe(lease, [gone!.number]);
    const duty = node.cluster.lease("duty");
    expect(await eventually(() => duty.isHeld, WAIT_MS)).toBe(true);
    expect(said.filter((message) => /gone/.test(message))).toHaveLength(1);
    const rows = (await sql.unsafe(`SELECT number FROM ${SCHEMA}.nodes`)) as { number: unknown }[];
    expect(rows.map(({ number }) => Number(number))).toEqual([node.number]);
    await node.leave();
  }, 120_000);
});
