/** Nodes on one PostgreSQL database, killed or stopped under load of senders, models and a chat. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { eventually } from "../e2e/hearth.ts";
import { hasPostgres } from "../postgres-server.ts";
import { FAKETIME, makeCluster, SCHEMA, TOKEN, type Cluster, type Node } from "./cluster.ts";
import { killCluster } from "./killed-cluster.ts";

const WAIT_MS = 120_000;

// `bun bench/cluster-kill.ts` does a hundred kills and twenty crashes, cuts connections, and starts with older versions
test.skipIf(!hasPostgres)(
  "runs survive killed nodes with clocks ten minutes off and a database crash: once, in order, one per session at a time",
  async () => {
    const clocks = FAKETIME === undefined ? [] : [600, -600]; // Debian's libfaketime; seconds
    const plan = { nodes: 3, kills: 3, stops: 0, restarts: 1, everyMs: 800, pauseMs: 30, clocks };
    const { accepted, lost, twice, disordered, overlaps, outcomes } = await killCluster(plan);
    expect(accepted).toBeGreaterThan(plan.kills);
    expect({ lost, twice, disordered, overlaps }).toEqual({ lost: [], twice: [], disordered: [], overlaps: [] });
    expect(Object.keys(outcomes).filter((outcome) => !outcome.startsWith("succeeded"))).toEqual([]);
  },
  600_000,
);

const post = (node: Node, body: object): Promise<Response> =>
  fetch(`${node.url}/hooks/agent`, {
    method: "POST",
    headers: { authorization: `Bearer ${TOKEN}` },
    body: JSON.stringify({ sessionKey: "hook:stopped", wakeMode: "next-heartbeat", ...body }),
  });

/** The remains of a run. */
async function tracesOf({ sql, sentTexts }: Cluster): Promise<string> {
  const tables = ["runs", "session_entries", "session_events", "outbox"].map((name) =>
    sql.unsafe(`SELECT * FROM ${SCHEMA}.${name} ORDER BY seq`),
  );
  return JSON.stringify([await Promise.all(tables), [...sentTexts]]);
}

const LOCK_OF_FIRST = `SELECT pg_terminate_backend(pid) FROM pg_locks
  WHERE locktype = 'advisory' AND objsubid = 2 AND granted AND objid = 1`;

test.skipIf(!hasPostgres)(
  "a node that is suspended and loses its connection begins no turn that another node may begin",
  async () => {
    const cluster = await makeCluster();
    try {
      const first = await cluster.startNode();
      await post(first, { message: "key=held takes=60000", deliver: false });
      const began = (key: string): number[] =>
        cluster.notes().flatMap(({ begins, pid }) => (begins === key ? pid : []));
      expect(await eventually(() => began("held").length === 1, WAIT_MS)).toBe(true);
      const second = await cluster.startNode();
      first.signal("SIGSTOP");
      await cluster.sql.unsafe(LOCK_OF_FIRST);
      expect(await eventually(() => began("held").length === 2, WAIT_MS)).toBe(true);
      const keys = Array.from({ length: 12 }, (_, i) => `k${i}`);
      const work = keys.map((key) => ({ message: `key=${key} takes=300`, sessionKey: `hook:${key}`, deliver: false }));
      for (const body of work) expect((await post(second, body)).status).toBe(202);
      first.signal("SIGCONT"); // before its next beat it looks for waiting runs
      const isDone = (key: string): boolean => cluster.notes().some(({ ends }) => ends === key);
      expect(await eventually(() => keys.every(isDone), WAIT_MS)).toBe(true);
      expect(keys.filter((key) => began(key).length > 1)).toEqual([]);
      const isStopped = (): boolean => cluster.notes().some(({ pid, ends }) => pid === first.pid && ends === "held");
      expect(await eventually(isStopped, WAIT_MS)).toBe(true);
    } finally {
      await cluster.close();
    }
  },
  600_000,
);

test.skipIf(!hasPostgres)(
  "a node that is suspended loses its turn to another node, and stores nothing when it resumes",
  async () => {
    const cluster = await makeCluster();
    try {
      const first = await cluster.startNode();
      const gate = join(cluster.folder, "open");
      const body = { message: `key=held until=${gate}`, deliver: true, channel: "telegram", to: "1" };
      expect((await post(first, body)).status).toBe(202);
      const has = (pid: number, what: "begins" | "ends"): boolean =>
        cluster.notes().some((note) => note.pid === pid && note[what] === "held");
      expect(await eventually(() => has(first.pid, "begins"), WAIT_MS)).toBe(true);
      first.signal("SIGSTOP");
      writeFileSync(gate, "");
      const second = await cluster.startNode();
      expect(await eventually(() => has(second.pid, "ends") && cluster.sentTexts.size === 1, WAIT_MS)).toBe(true);
      const isSettled = async (): Promise<boolean> => {
        const [run] = await cluster.sql.unsafe(`SELECT state, reply, attempts FROM ${SCHEMA}.runs`);
        return Bun.deepEquals(
          { ...run, attempts: Number(run.attempts) },
          { state: "succeeded", reply: "sent", attempts: 2 },
        );
      };
      expect(await eventually(isSettled, WAIT_MS)).toBe(true);
      const before = await tracesOf(cluster);
      first.signal("SIGCONT");
      const isBack = (): boolean =>
        cluster.notes().some(({ pid, log }) => pid === first.pid && log?.msg.includes("removed this one") === true);
      expect(await eventually(isBack, WAIT_MS)).toBe(true);
      expect(await eventually(() => has(first.pid, "ends"), WAIT_MS)).toBe(true);
      expect((await post(first, { message: "key=next", deliver: false })).status).toBe(202);
      expect(await eventually(() => cluster.notes().some(({ ends }) => ends === "next"), WAIT_MS)).toBe(true);
      expect(before).toContain("held");
      expect(JSON.parse(before)[0][0]).toHaveLength(1);
      const after = JSON.parse(await tracesOf(cluster));
      expect([after[0][0][0], after[0][1].slice(0, 2), after[0][3], after[1]]).toEqual([
        JSON.parse(before)[0][0][0],
        JSON.parse(before)[0][1].slice(0, 2),
        JSON.parse(before)[0][3],
        JSON.parse(before)[1],
      ]);
    } finally {
      await cluster.close();
    }
  },
  600_000,
);
