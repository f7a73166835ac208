/**
 * A cluster under load whose nodes are killed at random moments and restarted, or stopped until others take over their
 * work, while the database crashes now and then, with senders that repeat a request until it is accepted.
 */
import { eventually } from "../e2e/hearth.ts";
import { testRng } from "../seed.ts";
import { makeCluster, SCHEMA, TOKEN, type Cluster, type Node, type Note, type Start } from "./cluster.ts";

const SENDERS = 4;
/** Sessions of each sender. */
const SESSIONS = 12;
/** One reply in this many goes to the chat. */
const TOLD_EVERY = 5;
const TURN_MS = 40;
/** Time without any ending run after which open runs count as stuck: longer than the pause after crashes. */
const STALL_MS = 400_000;
/** Length of an outage: longer than its node keeps its leases. */
const CUT_MS = 60_000;
const STARTS_MAX = 50;
const TAKEOVER_WAIT_MS = 60_000;

export interface ClusterPlan {
  readonly nodes: number;
  readonly kills: number;
  /** Nodes that are stopped, and continued once they have lost everything. */
  readonly stops: number;
  /** Crashes of the database. */
  readonly restarts: number;
  /**
   * Number of cuts of the first node's connection to the database, each until it has lost everything and for a while
   * after.
   */
  readonly cuts?: number;
  /** Offsets of clocks in seconds, node by node. */
  readonly clocks?: readonly number[];
  /** The program of an older version to start nodes with; each is replaced once, at some moment. */
  readonly older?: string;
  /** Milliseconds between two of these, at most. */
  readonly everyMs: number;
  /** Requests at once; absent: four. */
  readonly senders?: number;
  /** A sender's pause after an answer. */
  readonly pauseMs: number;
  /** Longest duration of a turn. */
  readonly turnMs?: number;
}

export interface ClusterReport {
  readonly accepted: number;
  readonly refused: number;
  readonly lost: readonly string[];
  readonly twice: readonly string[];
  readonly disordered: readonly string[];
  /** Requests whose turns ran while another of their session did. */
  readonly overlaps: readonly string[];
  /**
   * Number of turns that were started again: their node was killed, stopped or removed before the answer was stored, or
   * the database crashed then. Each such event may repeat all turns that were running; each turn has one stored answer.
   */
  readonly repeated: number;
  /** Final states and replies, each with its number. */
  readonly outcomes: Readonly<Record<string, number>>;
  readonly kills: readonly Takeover[];
  readonly stops: readonly Takeover[];
  readonly cuts: readonly Takeover[];
}

/** Milliseconds until a killed or stopped node's work was taken over; undefined: it had none. */
export interface Takeover {
  /** Until the others removed it. */
  readonly nodeMs: number | undefined;
  readonly runsMs: number | undefined;
  readonly leasesMs: number | undefined;
}

/** A process that was stopped or killed between two times. */
interface Silence {
  readonly pid: number;
  readonly from: number;
  readonly until: number;
}

/** The answer to each request, by its key. */
type Ledger = Map<string, string>;

export async function killCluster(plan: ClusterPlan): Promise<ClusterReport> {
  const cluster = await makeCluster({ hasNetwork: (plan.cuts ?? 0) > 0 });
  try {
    const older = plan.older === undefined ? {} : { program: plan.older };
    const nodes = await Promise.all(
      Array.from({ length: plan.nodes }, (_, i) => cluster.startNode({ ...startOf(plan, i), ...older })),
    );
    const ledger: Ledger = new Map();
    const senders = Array.from(
      { length: plan.senders ?? SENDERS },
      (_, id) => new Sender(id, { nodes, ledger, pauseMs: plan.pauseMs, turnMs: plan.turnMs ?? TURN_MS }),
    );
    const work = senders.map((sender) => sender.run());
    const silences: Silence[] = [];
    const takeovers = await disturb(cluster, nodes, { plan, silences });
    for (const sender of senders) sender.stop();
    await Promise.all(work);
    await settle(cluster);
    const refused = senders.reduce((sum, sender) => sum + sender.refused, 0);
    return { accepted: ledger.size, refused, ...(await examine(cluster, ledger, silences)), ...takeovers };
  } finally {
    await cluster.close();
  }
}

function startOf({ cuts = 0, clocks = [] }: ClusterPlan, i: number): Start {
  return { clock: clocks[i] ?? 0, isFar: cuts > 0 && i === 0 };
}

async function disturb(
  cluster: Cluster,
  nodes: Node[],
  { plan, silences }: { plan: ClusterPlan; silences: Silence[] },
): Promise<Pick<ClusterReport, "kills" | "stops" | "cuts">> {
  const rng = testRng("killed-cluster");
  const taken = { kills: [] as Takeover[], stops: [] as Takeover[], cuts: [] as Takeover[] };
  let crashes = 0;
  /** Watches the leases and runs of a node; not while the database was down. */
  const watch = async (list: Takeover[], node: Node): Promise<void> => {
    const before = crashes;
    const takeover = await takeoverOf(cluster, numberOf(cluster, node));
    if (before === crashes) list.push(takeover);
  };
  const silence = async (node: Node, act: () => unknown): Promise<void> => {
    const from = now();
    await act();
    silences.push({ pid: node.pid, from, until: now() });
  };
  const pick = (): number => Math.floor(rng.float() * nodes.length);
  const kill = async (): Promise<void> => {
    const i = pick();
    await silence(nodes[i]!, () => nodes[i]!.kill());
    const watched = watch(taken.kills, nodes[i]!);
    nodes[i] = await restarted(cluster, startOf(plan, i));
    await watched;
  };
  let replaced = 0;
  const replace = async (): Promise<void> => {
    const i = replaced++;
    await silence(nodes[i]!, () => nodes[i]!.kill());
    nodes[i] = await restarted(cluster, startOf(plan, i));
  };
  const cut = async (): Promise<void> => {
    cluster.network!.cut();
    await Promise.all([watch(taken.cuts, nodes[0]!), Bun.sleep(CUT_MS)]);
    cluster.network!.mend();
  };
  const stop = async (): Promise<void> => {
    const node = nodes[pick()]!;
    await silence(node, () => node.signal("SIGSTOP"));
    await watch(taken.stops, node);
    node.signal("SIGCONT");
  };
  const crash = async (): Promise<void> => {
    crashes++;
    await cluster.server.stop("immediate");
    await cluster.server.start();
    crashes++;
  };
  const times = (n: number, act: () => Promise<void>) => Array.from({ length: n }, () => ({ act, at: rng.float() }));
  const acts = [
    ...times(plan.kills, kill),
    ...times(plan.stops, stop),
    ...times(plan.restarts, crash),
    ...times(plan.cuts ?? 0, cut),
    ...times(plan.older === undefined ? 0 : plan.nodes, replace),
  ];
  let crashing = Promise.resolve();
  for (const { act } of acts.toSorted((a, b) => a.at - b.at)) {
    await Bun.sleep(rng.float() * plan.everyMs);
    if (act === crash)
      crashing = crashing.then(crash); // the others continue meanwhile
    else await act();
  }
  await crashing;
  return taken;
}

/** The node's number; it changes after a removal. */
const numberOf = ({ notes }: Cluster, { pid }: Node): number =>
  notes().findLast((note) => note.pid === pid && note.log?.node !== undefined)?.log?.node ?? 0;

/** Like a supervisor, because a node does not start while the database is down. */
async function restarted(cluster: Cluster, how: Start): Promise<Node> {
  for (let tries = 1; ; tries++) {
    try {
      return await cluster.startNode(how);
    } catch (error) {
      if (tries === STARTS_MAX) throw error;
      await Bun.sleep(200);
    }
  }
}

const now = (): number => performance.timeOrigin + performance.now();

async function takeoverOf({ sql }: Cluster, number: number): Promise<Takeover> {
  const begun = performance.now();
  const isThere = (text: string) => sql.unsafe(text, [String(number)]).then(({ length }) => length > 0);
  const until = async (text: string): Promise<number | undefined> => {
    let had = false;
    for (let ms = 0; ms < TAKEOVER_WAIT_MS; ms = performance.now() - begun) {
      const has = await isThere(text).catch(() => undefined); // the database may be down
      if (has === false) return had ? Math.round(ms) : undefined;
      had ||= has === true;
      await Bun.sleep(5);
    }
    return TAKEOVER_WAIT_MS;
  };
  const [nodeMs, runsMs, leasesMs] = await Promise.all([
    until(`SELECT 1 FROM ${SCHEMA}.nodes WHERE number::text = $1`),
    until(`SELECT 1 FROM ${SCHEMA}.runs WHERE lease_owner LIKE '%#' || $1 LIMIT 1`),
    until(`SELECT 1 FROM ${SCHEMA}.leases WHERE node::text = $1 LIMIT 1`),
  ]);
  return { nodeMs, runsMs, leasesMs };
}

interface SenderParts {
  readonly nodes: readonly Node[];
  readonly ledger: Ledger;
  readonly pauseMs: number;
  readonly turnMs: number;
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
      const takes = Math.floor(this.#random() * this.#parts.turnMs);
      while (!(await this.#send(next, takes))) await Bun.sleep(20);
      await Bun.sleep(this.#parts.pauseMs);
    }
  }

  async #send(next: number, takes: number): Promise<boolean> {
    const { nodes, ledger } = this.#parts;
    const key = `${this.#id}-${next}`;
    const isTold = next % TOLD_EVERY === 0;
    const body = {
      message: `key=${key} takes=${takes}`,
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

/** Waits until every run is over, for as long as some end. */
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
  { sql, sentTexts, notes }: Cluster,
  ledger: Ledger,
  silences: readonly Silence[],
): Promise<Omit<ClusterReport, "accepted" | "refused" | "kills" | "stops" | "cuts">> {
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
  const unsent = runs.filter(({ key, reply }) => reply === "sent" && !sentTexts.has(`answer to ${key}`));
  const outcomes = Map.groupBy(runs, ({ state, reply }) => `${state}, reply ${reply}`);
  const orderOf = (rows: readonly { session: string; id: string }[], session: string): string =>
    rows.flatMap((row) => (row.session === session ? [row.id] : [])).join();
  const turns = stored.map(({ run, session }) => ({ id: run, session }));
  const sessions = [...new Set(runs.map(({ session }) => session))];
  const { overlaps, repeated } = overlapsIn(notes(), { silences, sessionOf: (key) => byKey.get(key)?.[0]?.session });
  return {
    lost: [...lost.map(([key]) => key), ...unsent.map(({ key }) => `reply of ${key}`)],
    twice: [
      ...[...byKey].flatMap(([key, { length }]) => (length > 1 ? [`runs of ${key}`] : [])),
      ...stored.flatMap(({ run, asked }) => (Number(asked) > 1 ? [`turns of ${run}`] : [])),
      ...[...sentTexts].flatMap(([text, n]) => (n > 1 ? [`${n} times '${text}'`] : [])),
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

/**
 * An interrupted turn ended with its process, or when its process was stopped: it writes nothing afterwards. A busy
 * machine reports the end of a process late: what counts is the time of the signal.
 */
function overlapsIn(
  notes: readonly Note[],
  { silences, sessionOf }: { silences: readonly Silence[]; sessionOf: (key: string) => string | undefined },
): Pick<ClusterReport, "overlaps" | "repeated"> {
  const open = new Map<string, Turn>();
  const turns: Turn[] = [];
  for (const { at, pid, begins, ends: done } of notes) {
    if (begins !== undefined) {
      const cut = silences.find((silence) => silence.pid === pid && silence.until > at);
      const turn = { key: begins, begun: at, ended: Math.max(at, cut?.from ?? Infinity) };
      turns.push(turn);
      open.set(`${pid} ${begins}`, turn);
    }
    const turn = done === undefined ? undefined : open.get(`${pid} ${done}`);
    if (turn) turn.ended = Math.min(turn.ended, at);
  }
  const bySession = Map.groupBy(turns, ({ key }) => sessionOf(key) ?? "");
  const overlaps = [...bySession.values()].flatMap((own) =>
    own.flatMap(({ key, begun }, i) => (i > 0 && begun < own[i - 1]!.ended ? [key] : [])),
  );
  return { overlaps, repeated: turns.length - new Set(turns.map(({ key }) => key)).size };
}
