/**
 * A node among others on one PostgreSQL database. It says every few seconds that it is there and keeps its leases, on
 * the database's clock; a lock that its connection holds tells the others at once when it is killed. A node that is
 * silent or whose lock is free is removed, with all that it leads, and what it held is anybody's. If it was only
 * stopped, it finds that out with its next write, and goes on as a node of another number.
 *
 * All writes of all nodes are serial (see `postgres-store.ts`), so that what a script reads here is true until its end.
 */
import type { SQL } from "bun";
import { type Logger, messageOf } from "../../../base/index.ts";
import { beginPause, endPause, isPaused } from "../pauses.ts";
import type { Lease, NewsListener, Peers, Spent, Topic } from "../peers.ts";
import { queryAll, type Script, type Store } from "../store.ts";
import {
  databaseNow,
  enterNode,
  holdsLease,
  listNodes,
  nodeNumbers,
  removeNode,
  seeNode,
  silentNodes,
  spendTokens,
  takeLeases,
  type NodeFacts,
} from "./cluster-tables.ts";
import { Line } from "./line.ts";
import { NewsWire } from "./news.ts";
import { NodeLease } from "./node-lease.ts";
import { problemOf } from "./problems.ts";
import { makePool, planStatement, type ServerOptions } from "./server.ts";

const BEAT_MS = 2500;
/** After a beat that failed. */
const BEAT_AGAIN_MS = 250;
/** A lease lasts so long without a beat. */
const LEASE_MS = 10_000;
/** Its holder counts on it for less. */
const LEASE_SURE_MS = 8000;
/** Without a beat for so long a node stops its turns … */
const UNSURE_MS = 20_000;
/** … and is removed by the others. */
const SILENT_MS = 25_000;
/** How often the locks of the others are looked at. */
const LOOK_MS = 100;
/** A look waits for nobody. */
const LOOK_SILENT_MS = 5000;
/** A lock that was free for so long is a dead node's; one that only lost its connection takes it again before. */
const FREE_MS = 200;
/** How long what is under way may take at the end: a connection that leads nowhere does not say so. */
const LEAVE_MS = 5000;
/** After the database was away for this node, the others may still be coming back. */
const RETURN_MS = 3000;

/** A database's clock that goes ahead by more was set: the others were not silent for as long as it says. */
const SET_AHEAD_MS = 2000;

/** First of the two numbers of a node's lock, with the schema; the other is the node's. */
const NODE_LOCK = "hearth node";

export interface ClusterOptions extends ServerOptions {
  readonly facts: () => NodeFacts;
  readonly log: Logger;
  /** Milliseconds between two looks at the locks of the others; undefined: 100. */
  readonly lookMs?: number;
}

/** What a beat found. */
interface Beat {
  readonly number: number;
  /** Leases. */
  readonly taken: readonly string[];
  /** Nodes that were silent. */
  readonly removed: readonly number[];
  /** From `performance.now()` to the database's clock. */
  readonly offset: number;
  readonly isPaused: boolean;
}

/** Throws `storage` where that fails. */
export async function joinCluster(store: Store, options: ClusterOptions): Promise<Cluster> {
  const cluster = new Cluster(store, options);
  try {
    await cluster.enter();
    return cluster;
  } catch (error) {
    await cluster.leave();
    throw problemOf(error);
  }
}

export class Cluster implements Peers {
  readonly #store: Store;
  readonly #options: ClusterOptions;
  readonly #lookMs: number;
  /** For the lock: writes and reads have the store's connections. */
  readonly #sql: SQL;
  readonly #wire: NewsWire;
  readonly #leases = new Map<string, NodeLease>();
  readonly #onLost = new Set<() => void>();
  /** Since when the lock of another node is free, by `performance.now()`. */
  readonly #freeSince = new Map<number, number>();
  #line: Line | undefined;
  #number = 0;
  #lockedAs = 0;
  #others = 0;
  #clockOffset = 0;
  #beatAt = 0;
  #isLost = false;
  #isPaused = false;
  #returnedAt = -Infinity;
  /** When the database's clock was found set ahead. */
  #setAheadAt = -Infinity;
  #isOver = false;
  #beating: Promise<void> = Promise.resolve();
  #looking: Promise<void> = Promise.resolve();
  #nextBeat: Timer | undefined;
  #nextLook: Timer | undefined;
  #timeCheck: Timer | undefined;

  constructor(store: Store, options: ClusterOptions) {
    this.#store = store;
    this.#options = options;
    this.#lookMs = options.lookMs ?? LOOK_MS;
    this.#sql = makePool({ ...options, connections: 1 }, { onClose: () => this.#line && this.#lookIn(0) });
    this.#wire = new NewsWire(options);
    this.#wire.listen((topic) => {
      this.#others ||= 1; // who speaks is there, before its lock is looked at
      if (topic === "pause") this.#beatIn(0);
    });
  }

  get me(): string {
    return `${this.#options.facts().name}#${this.#number}`;
  }

  get count(): number {
    return 1 + this.#others;
  }

  /** Epoch milliseconds on the database's clock. */
  now(): number {
    return Math.floor(performance.now() + this.#clockOffset);
  }

  async enter(): Promise<void> {
    await this.#beat();
    await this.#look();
    await this.#wire.open();
    this.#beatIn(0);
    this.#lookIn(this.#lookMs);
    this.#timeCheck = setInterval(() => this.#checkTime(), LOOK_MS);
    this.#wire.tell("all");
  }

  /** Gives up all that it leads, so that others can take it at once. */
  async leave(): Promise<void> {
    this.#isOver = true;
    clearTimeout(this.#nextBeat);
    clearTimeout(this.#nextLook);
    clearInterval(this.#timeCheck);
    const given = Promise.withResolvers<void>();
    const giveUp = setTimeout(given.resolve, LEAVE_MS);
    await Promise.race([Promise.all([this.#beating, this.#looking]), given.promise]);
    clearTimeout(giveUp); // a process that has nothing else to do would wait for it
    if (this.#number > 0) {
      await this.#store
        .write(() => removeNode(this.#number))
        .catch((error: unknown) =>
          this.#options.log.warn("cluster: the end was not told", { error: messageOf(error) }),
        );
      this.#wire.tell("all");
    }
    await this.#wire.close();
    this.#line?.close();
    await this.#sql.close({ timeout: 0 });
  }

  *gone(owners: readonly string[]): Script<string[]> {
    if (owners.length === 0) return [];
    const there = yield* nodeNumbers();
    return owners.filter((owner) => !there.has(Number(/#(\d+)$/.exec(owner)?.[1])));
  }

  nodes = listNodes;

  get isPaused(): boolean {
    return this.#isPaused;
  }

  async setPaused(given: boolean): Promise<void> {
    await this.#store.write(() => (given ? beginPause(this.now()) : endPause()));
    this.#isPaused = given;
    this.#wire.tell("pause");
    if (!given) this.#wire.say("all");
  }

  lease(name: string): Lease {
    const known = this.#leases.get(name);
    if (known) return known;
    const made = new NodeLease((): Script<boolean> => holdsLease(name, this.#number));
    this.#leases.set(name, made);
    if (this.#number > 0) this.#beatIn(0);
    return made;
  }

  spend = (spent: readonly Spent[]): Promise<readonly number[]> =>
    this.#store.write(() => spendTokens(spent, this.now()));

  tell(topic: Topic, id?: string, text?: string): void {
    if (this.#others > 0) this.#wire.tell(topic, id, text);
  }

  onNews(listener: NewsListener): () => void {
    return this.#wire.listen(listener);
  }

  onLost(listener: () => void): () => void {
    this.#onLost.add(listener);
    return () => void this.#onLost.delete(listener);
  }

  #beatIn(ms: number): void {
    clearTimeout(this.#nextBeat);
    if (this.#isOver) return;
    this.#nextBeat = setTimeout(() => {
      this.#beating = this.#beating
        .then(() => this.#beat())
        .then(
          () => this.#beatIn(BEAT_MS),
          () => this.#beatIn(BEAT_AGAIN_MS), // the store says why
        );
    }, ms);
  }

  /** Says that it is there, keeps and takes leases, removes who is silent. Rejects where the database is away. */
  async #beat(): Promise<void> {
    const begun = performance.now();
    const { number, taken, removed, offset, isPaused: isPausedNow } = await this.#store.write(() => this.#beatScript());
    const before = this.#number;
    this.#number = number;
    this.#clockOffset = offset;
    this.#beatAt = begun;
    this.#isLost = false;
    const isResumed = this.#isPaused && !isPausedNow;
    this.#isPaused = isPausedNow;
    if (isResumed) this.#wire.say("all");
    if (before === 0) this.#options.log.info("cluster: this node is here", { node: number });
    else if (number !== before) {
      this.#options.log.warn("cluster: the others gave this node up; it goes on as another", {
        was: before,
        node: number,
      });
      this.#lookIn(0); // its lock is to be had
      this.#lose();
    }
    const isNews = [...this.#leases].filter(([name, lease]) => {
      const isHeld = taken.includes(name);
      return lease.become(isHeld, isHeld ? begun + LEASE_SURE_MS : 0) && isHeld;
    });
    if (removed.length > 0) this.#told(removed);
    else if (isNews.length > 0) this.#wire.say("all");
  }

  *#beatScript(): Script<Beat> {
    const asked = performance.now();
    const now = yield* databaseNow();
    const offset = now - (asked + performance.now()) / 2;
    const facts = this.#options.facts();
    const isKnown = this.#number > 0 && (yield* seeNode(this.#number, facts.digest, now));
    const number = isKnown ? this.#number : yield* enterNode(facts, now);
    if (this.#number > 0 && offset - this.#clockOffset > SET_AHEAD_MS) this.#setAheadAt = performance.now();
    const isSetAhead = performance.now() - this.#setAheadAt < RETURN_MS;
    const removed = this.#isReturning || isSetAhead ? [] : yield* silentNodes(now - SILENT_MS);
    for (const silent of removed) yield* removeNode(silent);
    const times = { now, overAt: isSetAhead ? 0 : now, until: now + LEASE_MS };
    const taken = yield* takeLeases([...this.#leases.keys()], { node: number, ...times });
    return { number, taken, removed, offset, isPaused: yield* isPaused() };
  }

  #told(removed: readonly number[]): void {
    this.#options.log.warn("cluster: nodes are gone; what they held is taken up", { nodes: removed.join(", ") });
    this.#wire.tell("all");
    this.#wire.say("all");
    this.#beatIn(0); // what they led is free
  }

  get #isReturning(): boolean {
    return performance.now() - this.#returnedAt < RETURN_MS;
  }

  #lookIn(ms: number): void {
    clearTimeout(this.#nextLook);
    if (this.#isOver) return;
    this.#nextLook = setTimeout(() => {
      this.#looking = this.#looking
        .then(() => this.#look())
        .then(
          () => this.#lookIn(this.#untilLook()),
          () => this.#lookIn(this.#hasLostLine() ? 0 : this.#lookMs),
        );
    }, ms);
  }

  /** Not later than a lock has been free for long enough. */
  #untilLook(): number {
    const left = Math.ceil(Math.min(...this.#freeSince.values()) + FREE_MS - performance.now());
    return left > 0 ? Math.min(this.#lookMs, left) : this.#lookMs;
  }

  /** Returns whether there was one: the lock is to be had again at once, before the others miss it. */
  #hasLostLine(): boolean {
    const line = this.#line;
    this.#line = undefined;
    line?.close();
    this.#lockedAs = 0;
    this.#freeSince.clear();
    this.#returnedAt = performance.now();
    return line !== undefined;
  }

  /** Keeps this node's lock, and finds nodes whose lock nobody keeps. */
  async #look(): Promise<void> {
    this.#line ??= await this.#openLine();
    const space = `${NODE_LOCK} ${this.#options.schema}`;
    if (this.#lockedAs !== this.#number) {
      await this.#line.query("SELECT pg_advisory_unlock_all()");
      const lock = "SELECT pg_try_advisory_lock(hashtext($1), $2::int)";
      await this.#line.query(lock, [space, this.#number]);
      this.#lockedAs = this.#number;
    }
    const begun = performance.now();
    const rows = (await this.#line.query(FREE_LOCKS, [space])) as unknown as { number: unknown; isFree: boolean }[];
    this.#others = rows.filter(({ number }) => Number(number) !== this.#number).length;
    const free = new Set(rows.filter(({ isFree }) => isFree).map(({ number }) => Number(number)));
    if (free.delete(this.#number)) this.#lockedAs = 0; // its connection broke, and another took its place
    await this.#bury(free, begun);
  }

  /** Looks are always the same: their plan is kept. */
  async #openLine(): Promise<Line> {
    const line = await Line.open(this.#sql, LOOK_SILENT_MS);
    await line.query(planStatement(true));
    return line;
  }

  /** @param lookedAt when the look began: an answer that was late says nothing of the time that it took */
  async #bury(free: ReadonlySet<number>, lookedAt: number): Promise<void> {
    for (const number of this.#freeSince.keys()) if (!free.has(number)) this.#freeSince.delete(number);
    for (const number of free) if (!this.#freeSince.has(number)) this.#freeSince.set(number, performance.now());
    if (this.#isReturning) return;
    const dead = [...this.#freeSince].filter(([, since]) => lookedAt - since >= FREE_MS).map(([number]) => number);
    if (dead.length === 0) return;
    const space = `${NODE_LOCK} ${this.#options.schema}`;
    const removed = await this.#store.write(() => removeFree(dead, space));
    if (removed.length > 0) this.#told(removed);
  }

  /** What time alone takes away: leases, and in the end everything. */
  #checkTime(): void {
    const now = performance.now();
    for (const lease of this.#leases.values()) lease.checkTime(now);
    if (now - this.#beatAt < UNSURE_MS || this.#isLost || this.#number === 0) return;
    this.#isLost = true;
    this.#options.log.error("cluster: the database cannot be reached; turns that run are stopped");
    this.#lose();
  }

  #lose(): void {
    for (const listener of this.#onLost) listener();
  }
}

/** Removes those of the nodes whose locks are still free. */
function* removeFree(numbers: readonly number[], space: string): Script<number[]> {
  const rows = yield* queryAll<{ number: number; isFree: boolean }>(FREE_LOCKS, space);
  const free = new Set(rows.flatMap(({ number, isFree }) => (isFree ? number : [])));
  const removed: number[] = [];
  for (const number of numbers) if (free.has(number) && (yield* removeNode(number))) removed.push(number);
  return removed;
}

/** Locks of two numbers; `pg_locks` shows them as unsigned. */
const FREE_LOCKS = `
  WITH locks AS MATERIALIZED (
    SELECT objid FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted
      AND classid = hashtext($1)::oid
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  )
  SELECT number, NOT EXISTS (SELECT 1 FROM locks WHERE objid = number::int::oid) AS "isFree" FROM nodes`;
