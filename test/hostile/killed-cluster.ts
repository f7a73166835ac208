/**
 * A cluster under load whose nodes are killed at random moments and started again, while the database crashes now and
 * then, with senders that repeat a request until it is accepted.
 */
import { eventually } from "../e2e/hearth.ts";
import { testRng } from "../seed.ts";
import { makeCluster, SCHEMA, TOKEN, type Cluster, type Node, type Note } from "./cluster.ts";

const SENDERS = 4;
/** Of each sender. */
const SESSIONS = 12;
/** One reply in so many goes to the chat. */
const TOLD_EVERY = 5;
const TURN_MS = 40;
/** How long no run may end before those that are open are taken for stuck: a pause after crashes is shorter. */
const STALL_MS = 400_000;
const STARTS_MAX = 50;
const TAKEOVER_WAIT_MS = 60_000;

export interface ClusterPlan {
  readonly nodes: number;
  readonly kills: number;
  /** Crashes of the database. */
  readonly restarts: number;
  /** Milliseconds between two of these, at most. */
  readonly everyMs: number;
  /** How long a sender waits after an answer. */
  readonly pauseMs: number;
}

export interface ClusterReport {
  readonly accepted: number;
  readonly refused: number;
  readonly lost: readonly string[];
  readonly twice: readonly string[];
  readonly disordered: readonly string[];
  /** Requests whose turns ran while another of their session did. */
  readonly overlaps: readonly string[];
  /** Turns that were begun again. */
  readonly repeated: number;
  /** Final states and replies, each with its number. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** From a kill until nothing is the killed node's any more, milliseconds; not while the database was away. */
  readonly takeoverMs: readonly number[];
}

/** What a request was answered with, by its key. */
type Ledger = Map<string, string>;

export async function killCluster(plan: ClusterPlan): Promise<ClusterReport> {
  const cluster = await makeCluster();
  try {
    const nodes = await Promise.all(Array.from({ length: plan.nodes }, () => cluster.startNode()));
    const ledger: Ledger = new Map();
    const senders = Array.from(
      { length: SENDERS },
      (_, id) => new Sender(id, { nodes, ledger, pauseMs: plan.pauseMs }),
    );
    const work = senders.map((sender) => sender.run());
    const ends = new Map<number, number>(); // by process, when it was killed
    const takeoverMs = await disturb(cluster, nodes, { plan, ends });
    for (const sender of senders) sender.stop();
    await Promise.all(work);
    await settle(cluster);
    const refused = senders.reduce((sum, sender) => sum + sender.refused, 0);
    return { accepted: ledger.size, refused, ...(await examine(cluster, ledger, ends)), takeoverMs };
  } finally {
    await cluster.close();
  }
}

async function disturb(
  cluster: Cluster,
  nodes: Node[],
  { plan, ends }: { plan: ClusterPlan; ends: Map<number, number> },
): Promise<number[]> {
  const rng = testRng("killed-cluster");
  const takeovers: Promise<number | undefined>[] = [];
  let crashes = 0;
  const kill = async (): Promise<void> => {
    const i = Math.floor(rng.float() * nodes.length);
    const node = nodes[i]!;
    await node.kill();
    ends.set(node.pid, now());
    const before = crashes;
    const taken = takeoverOf(cluster, node.number);
    takeovers.push(taken.then((ms) => (before === crashes ? ms : undefined)));
    nodes[i] = await restarted(cluster);
    await taken;
  };
  const crash = async (): Promise<void> => {
    crashes++;
    await cluster.server.stop("immediate");
    await cluster.server.start();
    crashes++;
  };
  const acts = [
    ...Array.from({ length: plan.kills }, () => kill),
    ...Array.from({ length: plan.restarts }, () => crash),
  ]
    .map((act) => ({ act, at: rng.float() }))
    .toSorted((a, b) => a.at - b.at);
  let crashing = Promise.resolve();
  for (const { act } of acts) {
    await Bun.sleep(rng.float() * plan.everyMs);
    if (act === kill) await kill();
    else crashing = crashing.then(crash); // kills go on meanwhile
  }
  await crashing;
  return (await Promise.all(takeovers)).filter((ms) => ms !== undefined);
}

/** As a supervisor does: a node does not start while the database is away. */
async function restarted(cluster: Cluster): Promise<Node> {
  for (let tries = 1; ; tries++) {
    try {
      return await cluster.startNode();
    } catch (error) {
      if (tries === STARTS_MAX) throw error;
      await Bun.sleep(200);
    }
  }
}

const now = (): number => performance.timeOrigin + performance.now();

/** Until nothing is a node's any more; undefined where it held nothing. */
async function takeoverOf({ sql }: Cluster, number: number): Promise<number | undefined> {
  const begun = performance.now();
  const held = async (): Promise<number> => {
    const [row] = await sql.unsafe(
      `SELECT (SELECT count(*) FROM ${SCHEMA}.runs WHERE lease_owner LIKE '%#' || $1) +
         (SELECT count(*) FROM ${SCHEMA}.leases WHERE node::text = $1) AS n`,
      [String(number)],
    );
    return Number((row as { n: unknown }).n);
  };
  let had = false;
  for (; performance.now() - begun < TAKEOVER_WAIT_MS; await Bun.sleep(5)) {
    const n = await held().catch(() => -1); // the database may be away
    if (n === 0) return had ? Math.round(performance.now() - begun) : undefined;
    had ||= n > 0;
  }
  return TAKEOVER_WAIT_MS;
}

interface SenderParts {
  readonly nodes: readonly Node[];
  readonly ledger: Ledger;
  readonly pauseMs: number;
}

class Sender {
  readonly #id: number;
  readonly #parts: SenderParts;
  readonly #random;
  refused = 0;
  #isOver = false;

  constructor(id: number, parts: SenderParts) {
    this.#id = id;
    this.#parts = parts;
    this.#random = testRng(`sender ${id}`).float;
  }

  stop(): void {
    this.#isOver = true;
  }

  /** One request after the other, each until it is accepted. */
  async run(): Promise<void> {
    for (let next = 0; !this.#isOver; next++) {
      while (!(await this.#send(next))) await Bun.sleep(20);
      await Bun.sleep(this.#parts.pauseMs);
    }
  }

  async #send(next: number): Promise<boolean> {
    const { nodes, ledger } = this.#parts;
    const key = `${this.#id}-${next}`;
    const isTold = next % TOLD_EVERY === 0;
    const body = {
      message: `key=${key} takes=${Math.floor(this.#random() * TURN_MS)}`,
      sessionKey: `hook:s${this.#id}-${next % SESSIONS}`,
      wakeMode: "next-heartbeat",
      ...(isTold ? { deliver: true, channel: "telegram", to: `${this.#id}${next % SESSIONS}` } : { deliver: false }),
    };
    try {
      const response = await fetch(`${nodes[Math.floor(this.#random() * nodes.length)]!.url}/hooks/agent`, {
        method: "POST",
        headers: { authorization: `Bearer ${TOKEN}`, "idempotency-key": key },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(20_000),
      });
      const { ok, runId } = (await response.json()) as { ok: boolean; runId: string };
      if (ok) ledger.set(key, runId);
      else this.refused++;
      return ok;
    } catch {
      return false; // the node was killed
    }
  }
}

/** Until every run is over, for as long as some end. */
async function settle({ sql }: Cluster): Promise<void> {
  const count = async (): Promise<number> => {
    const text = `SELECT count(*) AS n FROM ${SCHEMA}.runs WHERE finished_at IS NULL OR reply = 'pending'`;
    return Number(((await sql.unsafe(text)) as { n: unknown }[])[0]!.n);
  };
  let open = await count();
  const hasShrunk = async (): Promise<boolean> => open > (open = await count());
  while (open > 0 && (await eventually(hasShrunk, STALL_MS)));
}

interface RunRow {
  readonly key: string;
  readonly id: string;
  readonly state: string;
  readonly reply: string;
  readonly session: string;
}

async function examine(
  { sql, told, notes }: Cluster,
  ledger: Ledger,
  ends: ReadonlyMap<number, number>,
): Promise<Omit<ClusterReport, "accepted" | "refused" | "takeoverMs">> {
  const runs = (await sql.unsafe(
    `SELECT idempotency_key AS key, runs.id, state, reply, session_key AS session FROM ${SCHEMA}.runs
     JOIN ${SCHEMA}.deliveries ON deliveries.id = delivery_id ORDER BY runs.seq`,
  )) as RunRow[];
  const stored = (await sql.unsafe(
    `SELECT run_id AS run, session_key AS session, count(*) FILTER (WHERE body LIKE '%"role":"user"%') AS asked
     FROM ${SCHEMA}.session_entries GROUP BY run_id, session_key ORDER BY min(seq)`,
  )) as { run: string; session: string; asked: unknown }[];
  const byKey = Map.groupBy(runs, ({ key }) => key);
  const isWhole = (run: RunRow): boolean => run.state === "succeeded" && run.reply !== "pending";
  const lost = [...ledger].filter(([key, id]) => !byKey.get(key)?.some((run) => run.id === id && isWhole(run)));
  const unsent = runs.filter(({ key, reply }) => reply === "sent" && !told.has(`answer to ${key}`));
  const outcomes = Map.groupBy(runs, ({ state, reply }) => `${state}, reply ${reply}`);
  const orderOf = (rows: readonly { session: string; id: string }[], session: string): string =>
    rows.flatMap((row) => (row.session === session ? [row.id] : [])).join();
  const turns = stored.map(({ run, session }) => ({ id: run, session }));
  const sessions = [...new Set(runs.map(({ session }) => session))];
  const { overlaps, repeated } = overlapsIn(notes(), { ends, sessionOf: (key) => byKey.get(key)?.[0]?.session });
  return {
    lost: [...lost.map(([key]) => key), ...unsent.map(({ key }) => `reply of ${key}`)],
    twice: [
      ...[...byKey].flatMap(([key, { length }]) => (length > 1 ? [`runs of ${key}`] : [])),
      ...stored.flatMap(({ run, asked }) => (Number(asked) > 1 ? [`turns of ${run}`] : [])),
      ...[...told].flatMap(([text, n]) => (n > 1 ? [`${n} times '${text}'`] : [])),
    ],
    disordered: sessions.filter((session) => orderOf(runs, session) !== orderOf(turns, session)),
    overlaps,
    repeated,
    outcomes: Object.fromEntries([...outcomes].map(([name, { length }]) => [name, length])),
  };
}

interface Turn {
  readonly key: string;
  readonly begun: number;
  ended: number;
}

/** A turn that was cut off ended with its process. */
function overlapsIn(
  notes: readonly Note[],
  { ends, sessionOf }: { ends: ReadonlyMap<number, number>; sessionOf: (key: string) => string | undefined },
): Pick<ClusterReport, "overlaps" | "repeated"> {
  const open = new Map<string, Turn>();
  const turns: Turn[] = [];
  for (const { at, pid, begins, ends: done } of notes) {
    if (begins !== undefined) {
      const turn = { key: begins, begun: at, ended: ends.get(pid) ?? Infinity };
      turns.push(turn);
      open.set(`${pid} ${begins}`, turn);
    }
    const turn = done === undefined ? undefined : open.get(`${pid} ${done}`);
    if (turn) turn.ended = at;
  }
  const bySession = Map.groupBy(turns, ({ key }) => sessionOf(key) ?? "");
  const overlaps = [...bySession.values()].flatMap((own) =>
    own.flatMap(({ key, begun }, i) => (i > 0 && begun < own[i - 1]!.ended ? [key] : [])),
  );
  return { overlaps, repeated: turns.length - new Set(turns.map(({ key }) => key)).size };
}
