/**
 * Sends the messages of the outbox: in order to each recipient, to several at once, never faster than a platform
 * allows. One node sends for each channel. All state of a message is on the disk; memory holds only the lanes being
 * sent right now.
 */
import { type Logger, messageOf, setBackDetector } from "../../../base/index.ts";
import type { Lease, Peers } from "../../database/peers.ts";
import { queryOne, type Transaction, type Store } from "../../database/store.ts";
import { FailureLog } from "../../database/failure-log.ts";
import type { Channel, SendOutcome } from "../channel.ts";
import { addText, cancelText, textOutcome, type CalledBack, type NewText, type TextOutcome } from "./messages.ts";
import { dueHeads, type LaneHead } from "./lane-heads.ts";
import { Outages } from "./outages.ts";
import {
  isRepeatable,
  recover,
  sendingRows,
  settle,
  writeSettlement,
  type RetryLimits,
  type Settlement,
} from "./settle.ts";
import type { OutboxRow } from "./tables.ts";

/** The attempts take longer than the day, unless a platform asks for other pauses. */
const LIMITS: RetryLimits = { maxAttempts: 300, maxAgeMs: 24 * 3_600_000 };
/** Recipients of one channel served at once. */
const PER_CHANNEL_MAX = 4;
const WAIT_MAX_MS = 60_000; // timers of days overflow
/** The longest pause of a whole channel after `Retry-After`; the message that got it waits the full time. */
const PAUSE_MAX_MS = 60_000;
const STORAGE_RETRY_MS = 1000;

export interface Settled extends TextOutcome {
  readonly groupId: string;
}

export interface OutboxDeps {
  readonly store: Store;
  readonly peers: Peers;
  /** The current configuration's channels; read at every use. */
  readonly channels: () => ReadonlyMap<string, Channel>;
  /** The reason why a channel is missing. */
  readonly whyMissing?: (channel: string) => string;
  readonly now: () => number;
  readonly log: Logger;
  readonly random?: () => number;
  readonly limits?: RetryLimits;
  /** Called after every attempt. */
  readonly onTried?: (channel: string, outcome: SendOutcome["kind"]) => void;
  /** Called in the transaction in which the last message of a text ends. */
  readonly onSettle?: (settled: Settled) => Transaction<void>;
  /** Filters texts that go to another channel if this one fails, and so need not wait for it. */
  readonly goElsewhere?: (groupIds: readonly string[]) => Promise<ReadonlySet<string>>;
}

export class Outbox {
  readonly #deps: OutboxDeps;
  readonly #listeners = new Set<(groupId: string) => void>();
  /** Lanes whose messages are being sent. */
  readonly #busy = new Map<string, { channel: string; done: Promise<void> }>();
  /** By lane: the earliest time of the next message, for platforms that need spacing. */
  readonly #spaced = new Map<string, number>();
  /** By channel: the earliest time of the next message, as the platform has asked. */
  readonly #paused = new Map<string, number>();
  readonly #outages: Outages;
  /** By channel. */
  readonly #leases = new Map<string, Lease>();
  readonly #stop = new AbortController();
  #stopListening = (): void => {};
  /** True if messages may be marked `sending` that no process sends. */
  #hasStrays = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #pumping: Promise<void> | undefined;
  #isDirty = false;
  #isRunning = false;

  readonly #isSetBack: () => boolean;
  readonly #failures = new FailureLog("the outbox: the database failed");

  constructor(deps: OutboxDeps) {
    this.#deps = deps;
    this.#isSetBack = setBackDetector(deps.now);
    this.#outages = new Outages(deps);
  }

  /** Adds a text in the caller's transaction; call `poke` after its commit. */
  add(text: NewText): Transaction<void> {
    return addText(text, this.#deps.channels().get(text.target.channel));
  }

  /** Cancels messages that have not left; one being sent is not retried. */
  async cancel(groupId: string): Promise<CalledBack> {
    const { store, peers, now } = this.#deps;
    const cancel = function* (
      settled: Transaction<boolean>,
    ): Transaction<CalledBack & { readonly isSettled: boolean }> {
      const called = yield* cancelText(groupId, now());
      return { ...called, isSettled: called.messages > 0 && (yield* settled) };
    };
    const { isSettled, ...called } = await store.write(() => cancel(this.#settled(groupId)));
    if (isSettled) this.#tell(groupId);
    this.poke();
    peers.tell("outbox"); // messages after it may be due now
    return called;
  }

  /** Calls `listener` with every text whose messages have all ended. Returns a function that stops it. */
  onSettled(listener: (groupId: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Settles messages that a crash interrupted, then sends. */
  async start(): Promise<void> {
    const { peers, channels } = this.#deps;
    this.#stopListening = peers.onNews((topic) => {
      if (topic === "outbox" || topic === "all") this.poke();
    });
    for (const channel of channels().keys()) this.#lease(channel);
    await this.#recover();
    this.#isRunning = true;
    this.poke();
  }

  #lease(channel: string): Lease {
    const known = this.#leases.get(channel);
    if (known) return known;
    const lease = this.#deps.peers.lease(`channel:${channel}`);
    this.#leases.set(channel, lease);
    lease.onChange((isHeld) => {
      this.#hasStrays ||= isHeld; // strays of the channel's previous node
      this.poke();
    });
    return lease;
  }

  /** Settles messages that a dead node was sending. */
  async #recover(): Promise<void> {
    this.#hasStrays = false;
    try {
      const settled = await this.#deps.store.write(() => this.#recoverAll());
      for (const groupId of settled) this.#tell(groupId);
    } catch (error) {
      this.#hasStrays = true;
      throw error;
    }
  }

  *#recoverAll(): Transaction<string[]> {
    const { channels, now } = this.#deps;
    const settled: string[] = [];
    const touched = new Set<string>();
    for (const row of yield* sendingRows()) {
      if (this.#busy.has(row.lane) || !(yield* this.#lease(row.channel).holds())) continue;
      yield* recover(row, channels().get(row.channel)?.dedupeMs ?? 0, now());
      touched.add(row.group_id);
    }
    for (const groupId of touched) if (yield* this.#settled(groupId)) settled.push(groupId);
    return settled;
  }

  /**
   * Takes no new messages and waits for those under way; after the grace it aborts them, although they may have
   * arrived. An outcome that could not be stored by then is handled like a crash.
   */
  async stop({ graceMs = 10_000 }: { graceMs?: number } = {}): Promise<void> {
    this.#isRunning = false;
    this.#stopListening();
    clearTimeout(this.#timer);
    const grace = setTimeout(() => this.#stop.abort(), graceMs);
    await this.#pumping;
    await Promise.all([...this.#busy.values()].map(({ done }) => done));
    clearTimeout(grace);
    this.#stop.abort();
  }

  /** Tries channels again that refused our credentials, because the configuration has changed. */
  channelsChanged(): void {
    for (const channel of this.#outages.forgetRefusals()) this.#paused.delete(channel);
    this.poke();
  }

  /** Channels of this node that take no messages: since when, and whether they refuse our credentials. */
  get troubled(): { readonly channel: string; readonly sinceMs: number; readonly isRefused: boolean }[] {
    const { refusals, since } = this.#outages;
    return [...new Set([...refusals.keys(), ...since.keys()])].flatMap((channel) => {
      const sinceMs = refusals.get(channel)?.sinceMs ?? since.get(channel)!; // it is in one of them
      return this.#lease(channel).isHeld ? [{ channel, sinceMs, isRefused: refusals.has(channel) }] : [];
    });
  }

  /** Looks for due messages now. */
  poke(): void {
    this.#isDirty = true;
    if (!this.#isRunning || this.#pumping) return;
    this.#pumping = this.#pump().finally(() => {
      this.#pumping = undefined;
      if (this.#isDirty) this.poke();
    });
  }

  async #pump(): Promise<void> {
    while (this.#isDirty && this.#isRunning) {
      this.#isDirty = false;
      try {
        if (this.#hasStrays) await this.#recover();
        await this.#claim();
        this.#failures.succeeded(this.#deps.log);
      } catch (error) {
        this.#failures.failed(error, this.#deps.log);
        this.#wake(STORAGE_RETRY_MS);
      }
    }
  }

  /** Marks due messages as `sending`, and sends them once the marks are on the disk. */
  async #claim(): Promise<void> {
    const { store, now, channels } = this.#deps;
    const heads = await store.read(dueHeads);
    const leaving = await this.#leaving(heads);
    if (!this.#isRunning) return; // the outbox was stopped meanwhile
    if (this.#hasStrays) {
      this.#isDirty = true; // this node took over a channel meanwhile: first settle its previous node's messages
      return;
    }
    if (this.#isSetBack()) for (const times of [this.#spaced, this.#paused]) times.clear();
    this.#forgetPast(now());
    const due: LaneHead[] = [];
    const load = new Map<string, number>();
    for (const { channel } of this.#busy.values()) load.set(channel, (load.get(channel) ?? 0) + 1);
    let wakeAt = Infinity;
    if (this.#outages.any) this.#outages.keep(new Set(heads.map(({ lane }) => lane)));
    for (const row of heads) {
      if (this.#busy.has(row.lane) || !this.#lease(row.channel).isHeld) continue;
      const isFromAhead = (row.sending_at ?? row.created_at) > now(); // planned by a clock that was set back since
      const planned = isFromAhead ? 0 : row.next_at;
      const at = Math.max(planned, this.#spaced.get(row.lane) ?? 0, this.#paused.get(row.channel) ?? 0);
      const running = load.get(row.channel) ?? 0;
      if (at <= now()) leaving.delete(row.seq); // tried once more
      const isProbe = this.#outages.refusals.has(row.channel) && !leaving.has(row.seq);
      if (at > now() && !leaving.has(row.seq)) wakeAt = Math.min(wakeAt, at);
      else if (running < (isProbe ? 1 : PER_CHANNEL_MAX)) {
        load.set(row.channel, running + 1);
        due.push(row);
      }
    }
    if (wakeAt < Infinity) this.#wake(wakeAt - now());
    if (due.length === 0) return;
    const claimed = await store.write(() => this.#claimRows(due));
    for (const row of claimed) {
      const channel = channels().get(row.channel);
      const done = (leaving.has(row.seq) ? this.#giveUp(row) : this.#send(row, channel)).finally(() => {
        this.#busy.delete(row.lane);
        this.poke();
      });
      this.#busy.set(row.lane, { channel: row.channel, done });
    }
  }

  async #send(row: OutboxRow, channel: Channel | undefined): Promise<void> {
    const { now, onTried, goElsewhere } = this.#deps;
    const dedupeMs = channel?.dedupeMs ?? 0;
    const outcome = await this.#attempt(row, channel);
    onTried?.(row.channel, outcome.kind);
    if (outcome.kind === "sent") this.#outages.accepted(row.channel);
    if (outcome.kind === "retry" && outcome.afterMs) {
      this.#paused.set(row.channel, now() + Math.min(outcome.afterMs, PAUSE_MAX_MS));
    }
    if (channel && channel.spacingMs > 0) this.#spaced.set(row.lane, now() + channel.spacingMs);
    if (outcome.kind === "refused") {
      this.#paused.set(row.channel, now() + this.#outages.refused(row.channel, outcome.reason));
      const elsewhere = await goElsewhere?.([row.group_id]).catch(() => undefined);
      if (elsewhere?.has(row.group_id)) return this.#end(row, { kind: "failed", reason: outcome.reason });
    }
    return this.#end(row, outcome, dedupeMs);
  }

  /** Ends a message that does not wait for a channel that refuses our credentials. */
  #giveUp(row: OutboxRow): Promise<void> {
    const reason = this.#outages.refusals.get(row.channel)?.reason ?? "the channel refuses our credentials";
    return this.#end(row, { kind: "failed", reason });
  }

  async #end(row: OutboxRow, outcome: SendOutcome, dedupeMs = 0): Promise<void> {
    const { now, log, random = Math.random, limits = LIMITS } = this.#deps;
    const settlement = settle({ row, outcome, dedupeMs, limits, now: now(), random: random() });
    const { channel: id, group_id: groupId, chunk_index: part, attempts } = row;
    if (settlement.state === "queued") this.#outages.failed(row, settlement.reason);
    else if (settlement.state !== "sent") {
      const { state, reason } = settlement;
      log.warn("a message was not sent", { channel: id, groupId, part, attempts, state, reason });
    }
    await this.#store(row, settlement);
    if (settlement.state !== "queued") this.#outages.settled(row);
  }

  /** The messages that do not wait for a channel that refuses our credentials: too old, or sent elsewhere instead. */
  async #leaving(heads: readonly LaneHead[]): Promise<Set<number>> {
    const { now, limits = LIMITS, goElsewhere } = this.#deps;
    const waiting = heads.filter(({ channel }) => this.#outages.refusals.has(channel));
    if (waiting.length === 0) return new Set();
    const elsewhere = await goElsewhere?.(waiting.map((head) => head.group_id));
    const isTooOld = (head: LaneHead): boolean => now() - head.created_at > limits.maxAgeMs;
    return new Set(waiting.flatMap((head) => (elsewhere?.has(head.group_id) || isTooOld(head) ? [head.seq] : [])));
  }

  async #attempt(row: OutboxRow, channel: Channel | undefined): Promise<SendOutcome> {
    const { now, whyMissing = (id) => `channel '${id}' is not configured` } = this.#deps;
    const at = now();
    if (this.#stop.signal.aborted) return { kind: "retry", reason: "the process stopped before it was sent" };
    if (!channel) return { kind: "retry", reason: whyMissing(row.channel) };
    if (!isRepeatable(row.uncertain_at, channel.dedupeMs, at)) {
      return { kind: "failed", reason: row.reason ?? "it may have arrived before" };
    }
    // a repeat must leave while the platform still recognises it
    const leftMs = row.uncertain_at === null ? undefined : row.uncertain_at + channel.dedupeMs - at;
    const signal = leftMs ? AbortSignal.any([this.#stop.signal, AbortSignal.timeout(leftMs)]) : this.#stop.signal;
    const { channel: id, recipient: to, thread } = row;
    const target = { channel: id, to, ...(thread ? { thread } : {}) };
    try {
      return await channel.send({ target, text: row.text, key: row.key, signal });
    } catch (error) {
      return { kind: "unknown", reason: `channel '${id}' failed: ${messageOf(error).slice(0, 200)}` };
    }
  }

  /** Stores an outcome, and retries until it is stored; only a stop ends the retries. */
  async #store(row: OutboxRow, settlement: Settlement): Promise<void> {
    const { store, log } = this.#deps;
    const failures = new FailureLog(`storing the outcome of message ${row.key} failed`);
    for (;;) {
      try {
        const isSettled = await store.write(() => this.#settle(row, settlement));
        failures.succeeded(log);
        if (isSettled) this.#tell(row.group_id);
        return;
      } catch (error) {
        failures.failed(error, log);
        if (this.#stop.signal.aborted || !this.#isRunning) return;
        await Bun.sleep(STORAGE_RETRY_MS);
      }
    }
  }

  *#settle(row: OutboxRow, settlement: Settlement): Transaction<boolean> {
    const isOwn = yield* writeSettlement(row, settlement, this.#deps.now());
    return isOwn && (yield* this.#settled(row.group_id));
  }

  /** True if a text has ended, in the transaction that ended it. */
  *#settled(groupId: string): Transaction<boolean> {
    const { onSettle } = this.#deps;
    const outcome = yield* textOutcome(groupId);
    if (outcome && onSettle) yield* onSettle({ groupId, ...outcome });
    return outcome !== undefined;
  }

  #tell(groupId: string): void {
    for (const listener of this.#listeners) {
      try {
        listener(groupId);
      } catch (error) {
        this.#deps.log.error("a listener of the outbox failed", { groupId, error: messageOf(error) });
      }
    }
  }

  #wake(afterMs: number): void {
    clearTimeout(this.#timer);
    if (this.#isRunning) this.#timer = setTimeout(() => this.poke(), Math.min(Math.max(afterMs, 1), WAIT_MAX_MS));
  }

  #forgetPast(now: number): void {
    for (const map of [this.#spaced, this.#paused]) for (const [key, at] of map) if (at <= now) map.delete(key);
  }

  /**
   * Drops rows that were cancelled, tried or put off since they were read. A row marked `sending` that no process sends
   * was never sent: the commit of its mark failed.
   */
  *#claimRows(rows: readonly LaneHead[]): Transaction<OutboxRow[]> {
    const claimed: OutboxRow[] = [];
    for (const [channel, due] of Map.groupBy(rows, (row) => row.channel)) {
      if (!(yield* this.#lease(channel).holds())) continue;
      for (const { seq, attempts, next_at: nextAt } of due) {
        const row = yield* queryOne<OutboxRow>(CLAIM, this.#deps.now(), seq, attempts, nextAt);
        if (row) claimed.push(row);
      }
    }
    return claimed;
  }
}

const CLAIM = `UPDATE outbox SET state = 'sending', attempts = attempts + 1, sending_at = $1
  WHERE seq = $2 AND attempts = $3 AND next_at = $4 AND settled_at IS NULL RETURNING *`;
