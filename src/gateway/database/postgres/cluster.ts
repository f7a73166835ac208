/**
 * A node of a cluster on one PostgreSQL database. Every few seconds it updates its last-seen time and extends its
 * leases, by the database's clock. A lock held by its connection tells the others at once when it is killed. A node
 * that is silent, or whose lock is free, is removed with its leases, and its work is free to take. If it was only
 * stopped, it finds out with its next write, and rejoins with a new number.
 *
 * All writes of all nodes are serial (see `postgres-store.ts`), so a transaction's reads stay true until its end.
 */
import type { SQL } from "bun";
import { type Logger, messageOf } from "../../../base/index.ts";
import { beginPause, endPause, isPaused } from "../pauses.ts";
import type { Lease, NewsListener, Peers, Spent, Topic } from "../peers.ts";
import type { Transaction, Store } from "../store.ts";
import {
  databaseNow,
  enterNode,
  FREE_LOCKS,
  holdsLease,
  listNodes,
  nodeNumbers,
  removeFree,
  removeNode,
  seeNode,
  silentNodes,
  spendTokens,
  takeLeases,
  type NodeFacts,
} from "./cluster-tables.ts";
import { Connection } from "./connection.ts";
import { NewsWire } from "./news.ts";
import { NodeLease } from "./node-lease.ts";
import { problemOf } from "./problems.ts";
import { makePool, planStatement, type ServerOptions } from "./server.ts";

const BEAT_MS = 2500;
/** Delay after a failed beat. */
const BEAT_AGAIN_MS = 250;
/** A lease expires this long after its last beat. */
const LEASE_MS = 10_000;
/** Its holder relies on it for less. */
const LEASE_SURE_MS = 8000;
/** Time without an update after which a node stops its turns … */
const UNSURE_MS = 20_000;
/** … and after which the other nodes remove it. */
const SILENT_MS = 25_000;
/** Interval of checks of the other nodes' locks. */
const LOOK_MS = 100;
/** Timeout of a check. */
const LOOK_SILENT_MS = 5000;
/**
 * Time after which a free lock belongs to a dead node: a node that only lost its connection takes its lock again
 * sooner.
 */
const FREE_MS = 200;
/** Grace for work under way at shutdown: a dead connection does not report itself. */
const LEAVE_MS = 5000;
/** After an outage of the database, other nodes may need this long to return. */
const RETURN_MS = 3000;

/** A larger jump means that the database's clock was set ahead, so the other nodes were not silent for that long. */
const SET_AHEAD_MS = 2000;

/** First of the two keys of a node's advisory lock, with the schema; the second is the node's number. */
const NODE_LOCK = "hearth node";

export interface ClusterOptions extends ServerOptions {
  readonly facts: () => NodeFacts;
  readonly log: Logger;
  /** Milliseconds between checks of the other nodes' locks; default 100. */
  readonly lookMs?: number;
}

interface Beat {
  readonly number: number;
  /** Names of leases. */
  readonly taken: readonly string[];
  /** Numbers of silent nodes. */
  readonly removed: readonly number[];
  /** Offset from `performance.now()` to the database's clock. */
  readonly offset: number;
  readonly isPaused: boolean;
}

/** Throws `storage` if joining fails. */
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
  /** For the lock only; the store has separate connections. */
  readonly #sql: SQL;
  readonly #wire: NewsWire;
  readonly #leases = new Map<string, NodeLease>();
  readonly #onLost = new Set<() => void>();
  /** By node: the time since which its lock is free, by `performance.now()`. */
  readonly #freeSince = new Map<number, number>();
  #connection: Connection | undefined;
  #number = 0;
  #lockedAs = 0;
  #others = 0;
  #clockOffset = 0;
  #beatAt = 0;
  #isLost = false;
  #isPaused = false;
  #returnedAt = -Infinity;
  /** Time when the database's clock was last found set ahead. */
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
    this.#sql = makePool({ ...options, connections: 1 }, { onClose: () => this.#connection && this.#lookIn(0) });
    this.#wire = new NewsWire(options);
    this.#wire.listen((topic) => {
      this.#others ||= 1; // a node that sends news exists, even if its lock was not checked yet
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
    this.#timeCheck = setInterval(this.checkTime, LOOK_MS);
    this.#wire.tell("all");
  }

  /** Gives up all leases, so that others can take them at once. */
  async leave(): Promise<void> {
    this.#isOver = true;
    clearTimeout(this.#nextBeat);
    clearTimeout(this.#nextLook);
    clearInterval(this.#timeCheck);
    const given = Promise.withResolvers<void>();
    const giveUp = setTimeout(given.resolve, LEAVE_MS);
    await Promise.race([Promise.all([this.#beating, this.#looking]), given.promise]);
    clearTimeout(giveUp); // an otherwise idle process would wait for the timer
    if (this.#number > 0) {
      await this.#store
        .write(() => removeNode(this.#number))
        .catch((error: unknown) =>
          this.#options.log.warn("cluster: could not announce shutdown", { error: messageOf(error) }),
        );
      this.#wire.tell("all");
    }
    await this.#wire.close();
    this.#connection?.close();
    await this.#sql.close({ timeout: 0 });
  }

  *gone(owners: readonly string[]): Transaction<string[]> {
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
    const made = new NodeLease((): Transaction<boolean> => holdsLease(name, this.#number));
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

  /** Drops leases, and finally all claims, as time passes without an update. */
  checkTime = (): void => {
    const now = performance.now();
    for (const lease of this.#leases.values()) lease.checkTime(now);
    if (now - this.#beatAt < UNSURE_MS || this.#isLost || this.#number === 0) return;
    this.#isLost = true;
    this.#options.log.error("cluster: the database is unreachable; stopping running turns");
    this.#lose();
  };

  #beatIn(ms: number): void {
    clearTimeout(this.#nextBeat);
    if (this.#isOver) return;
    this.#nextBeat = setTimeout(() => {
      this.#beating = this.#beating
        .then(() => this.#beat())
        .then(
          () => this.#beatIn(BEAT_MS),
          () => this.#beatIn(BEAT_AGAIN_MS), // the store logs the reason
        );
    }, ms);
  }

  /**
   * Updates this node's last-seen time, extends and takes leases, and removes silent nodes. Rejects if the database is
   * down.
   */
  async #beat(): Promise<void> {
    const begun = performance.now();
    const {
      number,
      taken,
      removed,
      offset,
      isPaused: isPausedNow,
    } = await this.#store.write(() => this.#beatTransaction());
    const before = this.#number;
    this.#number = number;
    this.#clockOffset = offset;
    this.#beatAt = begun;
    this.#isLost = false;
    const isResumed = this.#isPaused && !isPausedNow;
    this.#isPaused = isPausedNow;
    if (isResumed) this.#wire.say("all");
    if (before === 0) this.#options.log.info("cluster: this node joined", { node: number });
    else if (number !== before) {
      this.#options.log.warn("cluster: the other nodes removed this one; it rejoined under a new number", {
        was: before,
        node: number,
      });
      this.#lookIn(0); // take the lock of the new number
      this.#lose();
    }
    const isNews = [...this.#leases].filter(([name, lease]) => {
      const isHeld = taken.includes(name);
      return lease.become(isHeld, isHeld ? begun + LEASE_SURE_MS : 0) && isHeld;
    });
    if (removed.length > 0) this.#reportRemoved(removed);
    else if (isNews.length > 0) this.#wire.say("all");
  }

  *#beatTransaction(): Transaction<Beat> {
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

  #reportRemoved(removed: readonly number[]): void {
    this.#options.log.warn("cluster: removed dead nodes; their work is free to take", { nodes: removed.join(", ") });
    this.#wire.tell("all");
    this.#wire.say("all");
    this.#beatIn(0); // the removed nodes' leases are free
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
          () => this.#lookIn(this.#hasLostConnection() ? 0 : this.#lookMs),
        );
    }, ms);
  }

  /** Time until the next check: at the latest when a free lock counts as a dead node's. */
  #untilLook(): number {
    if (this.#lockedAs !== this.#number) return LOOK_MS;
    const left = Math.ceil(Math.min(...this.#freeSince.values()) + FREE_MS - performance.now());
    return left > 0 ? Math.min(this.#lookMs, left) : this.#lookMs;
  }

  /** Returns true if the lock's connection was lost: then the lock is taken again before other nodes notice. */
  #hasLostConnection(): boolean {
    const connection = this.#connection;
    this.#connection = undefined;
    connection?.close();
    this.#lockedAs = 0;
    this.#freeSince.clear();
    this.#returnedAt = performance.now();
    return connection !== undefined;
  }

  /** Keeps this node's lock, and finds nodes whose lock is free. */
  async #look(): Promise<void> {
    this.#connection ??= await this.#openConnection();
    const space = `${NODE_LOCK} ${this.#options.schema}`;
    if (this.#lockedAs !== this.#number) this.#lockedAs = await this.#lock(this.#connection, space);
    const begun = performance.now();
    const rows = (await this.#connection.query(FREE_LOCKS, [space])) as unknown as {
      number: unknown;
      isFree: boolean;
    }[];
    this.#others = rows.filter(({ number }) => Number(number) !== this.#number).length;
    if (this.#others === rows.length) this.#beatIn(0); // the other nodes removed this one
    const free = new Set(rows.filter(({ isFree }) => isFree).map(({ number }) => Number(number)));
    if (free.delete(this.#number)) this.#lockedAs = 0; // the connection broke, and a new one took its place
    await this.#bury(free, begun);
  }

  /** Returns the number of the locked node; 0: the session of a broken connection still holds the lock. */
  async #lock(connection: Connection, space: string): Promise<number> {
    const number = this.#number; // a beat may change it
    await connection.query("SELECT pg_advisory_unlock_all()");
    const lock = `SELECT pg_try_advisory_lock(hashtext($1), $2::int) AS "isTaken"`;
    const [row] = await connection.query(lock, [space, number]);
    return row!["isTaken"] === true ? number : 0;
  }

  /** The check's plan is cached: its statement never changes. */
  async #openConnection(): Promise<Connection> {
    const connection = await Connection.open(this.#sql, LOOK_SILENT_MS);
    await connection.query(planStatement(true));
    return connection;
  }

  /** @param lookedAt start of the check, because a late answer proves nothing about its duration */
  async #bury(free: ReadonlySet<number>, lookedAt: number): Promise<void> {
    for (const number of this.#freeSince.keys()) if (!free.has(number)) this.#freeSince.delete(number);
    for (const number of free) if (!this.#freeSince.has(number)) this.#freeSince.set(number, performance.now());
    if (this.#isReturning) return;
    const dead = [...this.#freeSince].filter(([, since]) => lookedAt - since >= FREE_MS).map(([number]) => number);
    if (dead.length === 0) return;
    const space = `${NODE_LOCK} ${this.#options.schema}`;
    const removed = await this.#store.write(() => removeFree(dead, space));
    if (removed.length > 0) this.#reportRemoved(removed);
  }

  #lose(): void {
    for (const listener of this.#onLost) listener();
  }
}
