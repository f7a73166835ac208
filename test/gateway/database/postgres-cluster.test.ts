/** Nodes that share a database and watch each other's locks. */
import { SQL } from "bun";
import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test";
import { joinCluster } from "../../../src/gateway/database/postgres/cluster.ts";
import { clusterMigrations } from "../../../src/gateway/database/postgres/cluster-tables.ts";
import { openPostgres } from "../../../src/gateway/database/postgres/postgres-store.ts";
import type { Transaction, Store } from "../../../src/gateway/database/store.ts";
import { afterTest } from "../../cleanups.ts";
import { eventually } from "../../e2e/hearth.ts";
import { hasPostgres, startPostgres, type PostgresServer } from "../../postgres-server.ts";

const WAIT_MS = 30_000;
const SCHEMA = "nodes_of_a_test";
/** A lock free for this long counts as lost. */
const MISSED_MS = 200;
/** The same as in `cluster.ts`, like the next two. */
const BEAT_MS = 2500;
const RETURN_MS = 3000;
const LEAVE_MS = 5000;
/** The same as in `postgres-store.ts`. */
const WRITE_LOCK = 7_205_102;
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

  /**
   * @param said its log lines
   * @param more its polling interval
   */
  async function join(name: string, said: string[] = [], more: { lookMs?: number } = {}) {
    const options = { url: server.url, schema: SCHEMA, connections: 3, name: "test", ...more };
    const store = setAhead(await openPostgres(options, clusterMigrations));
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

  const holderOf = async (number: number, by = sql): Promise<number | undefined> =>
    ((await by.unsafe(LOCKED, [number])) as { pid: number }[])[0]?.pid;

  test("a node whose connection breaks takes its lock again before others miss it", async () => {
    const said: string[] = [];
    const node = await join("one", said, { lookMs: 10 * WAIT_MS }); // its next look does not come in this test
    const { number } = node;
    const breakLine = async (): Promise<number> => {
      const pid = await holderOf(number);
      const begun = performance.now();
      await sql.unsafe("SELECT pg_terminate_backend($1)", [pid]);
      const isBack = async () => ![pid, undefined].includes(await holderOf(node.number));
      while (!(await isBack()) && performance.now() - begun < WAIT_MS) await Bun.sleep(2);
      expect(await isBack()).toBe(true);
      return performance.now() - begun;
    };
    await breakLine(); // no other node could remove it
    expect([node.number, ...said]).toEqual([number, "cluster: this node joined"]);
    const other = await join("two", said);
    // a machine that is too busy to reconnect in time looks like a dead one
    if ((await breakLine()) < MISSED_MS) expect([node.number, ...said.slice(2)]).toEqual([number]);
    await node.leave();
    await other.leave();
  }, 120_000);

  test("a node takes its lock as soon as the session of its broken connection has ended", async () => {
    const node = await join("one", [], { lookMs: 10 * WAIT_MS });
    const { number } = node;
    const pid = await holderOf(number);
    await using other = new SQL({ path: server.socket, username: "hearth", database: "postgres", max: 1 });
    const former = await other.reserve(); // gets the lock before the node is back, as if the server noticed nothing
    const formerPid = ((await former.unsafe("SELECT pg_backend_pid() AS pid")) as { pid: number }[])[0]!.pid;
    const locked = former.unsafe(`SELECT pg_advisory_lock(hashtext('hearth node ${SCHEMA}'), ${number})`).execute();
    const waits = "SELECT 1 FROM pg_locks WHERE pid = $1 AND NOT granted";
    expect(await eventually(async () => (await sql.unsafe(waits, [formerPid])).length > 0, WAIT_MS)).toBe(true);
    await sql.unsafe("SELECT pg_terminate_backend($1)", [pid]);
    await locked;
    const looks = "SELECT 1 FROM pg_stat_activity WHERE query LIKE '%AS MATERIALIZED%isFree%' AND pid NOT IN ($1, $2)";
    const own = ((await sql.unsafe("SELECT pg_backend_pid() AS pid")) as { pid: number }[])[0]!.pid;
    expect(await eventually(async () => (await sql.unsafe(looks, [pid, own])).length > 0, WAIT_MS)).toBe(true);
    expect(await holderOf(number)).toBe(formerPid);
    await former.unsafe("SELECT pg_advisory_unlock_all()");
    const isBack = async () => ![undefined, pid, formerPid].includes(await holderOf(number));
    expect(await eventually(isBack, WAIT_MS)).toBe(true);
    former.release();
    await node.leave();
  }, 120_000);

  test("a node that has its lock again before its removal stays a member", async () => {
    const said: string[] = [];
    const node = await join("one", said);
    const other = await join("two", said);
    const { number } = node;
    const aside = new SQL({ path: server.socket, username: "hearth", database: "template1", max: 1 });
    const writer = await sql.reserve(); // holds the lock that every write waits for
    const schema = Bun.hash.crc32(SCHEMA) | 0;
    await writer.unsafe("BEGIN");
    await writer.unsafe(`SELECT pg_advisory_xact_lock(${WRITE_LOCK}, ${schema})`);
    await aside.unsafe("ALTER DATABASE postgres ALLOW_CONNECTIONS false");
    await aside.unsafe("SELECT pg_terminate_backend($1)", [await holderOf(number, aside)]);
    const waits = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
    expect(await eventually(async () => (await aside.unsafe(waits)).length > 0, WAIT_MS)).toBe(true);
    await aside.unsafe("ALTER DATABASE postgres ALLOW_CONNECTIONS true");
    expect(await eventually(async () => (await holderOf(number, aside)) !== undefined, WAIT_MS)).toBe(true);
    await writer.unsafe("COMMIT");
    writer.release();
    const seen = `SELECT 1 FROM ${SCHEMA}.nodes WHERE number = $1`;
    await other.cluster.setPaused(false); // a write after the waiting writes
    expect((await sql.unsafe(seen, [number])).length).toBe(1);
    expect([node.number, ...said.slice(2)]).toEqual([number]);
    await aside.close();
    await node.leave();
    await other.leave();
  }, 120_000);

  test("a node whose lock is free is removed once, and its leases become free", async () => {
    const said: string[] = [];
    const node = await join("one", said);
    const text = `INSERT INTO ${SCHEMA}.nodes (name, version, digest, digest_at, started_at, seen_at)
      SELECT 'gone', '1', 'd', seen_at, seen_at, seen_at FROM ${SCHEMA}.nodes RETURNING number`;
    const [gone] = (await sql.unsafe(text)) as { number: number }[];
    const lease = `INSERT INTO ${SCHEMA}.leases SELECT 'duty', $1, 1, seen_at, seen_at + 3600000 FROM ${SCHEMA}.nodes LIMIT 1`;
    await sql.unsafe(lease, [gone!.number]);
    const duty = node.cluster.lease("duty");
    expect(await eventually(() => duty.isHeld, WAIT_MS)).toBe(true);
    expect(said.filter((message) => /removed dead nodes/.test(message))).toHaveLength(1);
    const rows = (await sql.unsafe(`SELECT number FROM ${SCHEMA}.nodes`)) as { number: unknown }[];
    expect(rows.map(({ number }) => Number(number))).toEqual([node.number]);
    await node.leave();
  }, 120_000);

  test("a node that others have removed loses its turns at its next look, not at its next beat", async () => {
    const after = globalThis.setTimeout;
    const timers = spyOn(globalThis, "setTimeout").mockImplementation(((work: () => void, ms: number) =>
      after(ms === BEAT_MS ? () => {} : work, ms)) as typeof setTimeout); // no beat comes by itself
    afterTest(() => timers.mockRestore());
    const node = await join("one");
    const { number } = node;
    const duty = node.cluster.lease("watch"); // taken at once, by a beat
    expect(await eventually(() => duty.isHeld, WAIT_MS)).toBe(true);
    const lost = new Promise<void>((resolve) => node.cluster.onLost(resolve));
    await sql.unsafe(`DELETE FROM ${SCHEMA}.nodes WHERE number = $1`, [number]);
    await lost;
    expect(node.number).toBeGreaterThan(number);
    await node.leave();
  }, 120_000);

  test("a node that has left leaves no timer for which its process would wait", async () => {
    const after = globalThis.setTimeout;
    const graces: Timer[] = [];
    const timers = spyOn(globalThis, "setTimeout").mockImplementation(((work: () => void, ms: number) => {
      const timer = after(work, ms);
      if (ms === LEAVE_MS) graces.push(timer);
      return timer;
    }) as typeof setTimeout);
    afterTest(() => timers.mockRestore());
    const cleared = spyOn(globalThis, "clearTimeout");
    afterTest(() => cleared.mockRestore());
    await (await join("one")).leave();
    const ended = new Set<unknown>(cleared.mock.calls.map(([timer]) => timer));
    expect(graces.length).toBeGreaterThan(0);
    expect(graces.filter((timer) => !ended.has(timer))).toEqual([]);
  }, 120_000);

  test("a database clock that is set ahead makes no node silent and frees no lease", async () => {
    const said: string[] = [];
    const nodes = [await join("one", said), await join("two", said)];
    const numbers = nodes.map(({ number }) => number);
    const duties = nodes.map(({ cluster }) => cluster.lease("duty"));
    expect(await eventually(() => duties.some(({ isHeld }) => isHeld), WAIT_MS)).toBe(true);
    const before = duties.map(({ isHeld }) => isHeld);
    aheadMs = 60_000;
    const begun = performance.now();
    const beats = new Map<Store, number>(); // since silent nodes are removed again
    onBeat = (store) => {
      if (performance.now() > begun + RETURN_MS) beats.set(store, (beats.get(store) ?? 0) + 1);
    };
    const haveBeaten = (): boolean => beats.size === 2 && [...beats.values()].every((count) => count > 1);
    expect(await eventually(haveBeaten, WAIT_MS)).toBe(true);
    expect(nodes.map(({ number }) => number)).toEqual(numbers);
    expect(duties.map(({ isHeld }) => isHeld)).toEqual(before);
    for (const node of nodes) await node.leave();
    [aheadMs, onBeat] = [0, () => {}];
  }, 120_000);
});

let aheadMs = 0;
/** Called when a node's transaction asks for the time. */
let onBeat: (store: Store) => void = () => {};

/** The database as if its clock were ahead. */
function setAhead(store: Store): Store {
  const write = store.write.bind(store);
  store.write = (work) => write(() => asked(work(), store));
  return store;
}

function* asked<T>(script: Transaction<T>, store: Store): Transaction<T> {
  let step = script.next();
  while (!step.done) {
    const answer = yield step.value;
    const isClock = JSON.stringify(step.value).includes("clock_timestamp");
    if (isClock) onBeat(store);
    step = script.next(isClock ? { now: (answer as { now: number }).now + aheadMs } : answer);
  }
  return step.value;
}
