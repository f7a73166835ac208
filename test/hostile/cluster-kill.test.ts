/** Nodes on one PostgreSQL database, killed or stopped under load of senders, models and a chat. */
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

test.skipIf(!hasPostgres)(
  "a node that is suspended loses its turn to another node, and stores nothing when it resumes",
  async () => {
    const cluster = await makeCluster();
    try {
      const first = await cluster.startNode();
      const body = { message: "key=held takes=1000", deliver: true, channel: "telegram", to: "1" };
      expect((await post(first, body)).status).toBe(202);
      const has = (pid: number, what: "begins" | "ends"): boolean =>
        cluster.notes().some((note) => note.pid === pid && note[what] === "held");
      expect(await eventually(() => has(first.pid, "begins"), WAIT_MS)).toBe(true);
      first.signal("SIGSTOP");
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
