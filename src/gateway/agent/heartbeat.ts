/**
 * The heartbeat: turns of the main session that no user asked for. One node of the cluster runs it. A timer starts one
 * regularly, within active hours; explicit requests start one at once, at any hour. None starts while turns are paused.
 * Only one runs at a time, and requests within a short time share one. Waiting events are in the database, so they
 * cause a heartbeat after a crash or a pause too.
 */
import { type Clock, type Logger, messageOf } from "../../base/index.ts";
import type { Lease, Peers } from "../database/peers.ts";
import type { Transaction, Store } from "../database/store.ts";
import { isActive } from "./active-hours.ts";
import type { Agent } from "./agent.ts";
import { waitingEvents, wantsHeartbeat } from "./events.ts";
import {
  concludeHeartbeat,
  heartbeatTarget,
  lastHeartbeat,
  type HeartbeatDelivery,
  type HeartbeatOutcome,
  type Reply,
} from "./heartbeat-outcome.ts";
import { heartbeatPrompt } from "./heartbeat-prompt.ts";
import { DEFAULT_AGENT, mainSessionKey } from "./session-key.ts";
import { turnSettings, type AgentSettings } from "./settings.ts";

export interface HeartbeatParts {
  readonly agent: Agent;
  readonly store: Store;
  readonly peers: Peers;
  readonly clock: Clock;
  readonly settings: () => AgentSettings;
  readonly delivery: HeartbeatDelivery;
  readonly log: Logger;
}

export interface HeartbeatStatus extends HeartbeatOutcome {
  /** The reasons of the run: `timer`, or the reasons of requests. */
  readonly reasons: readonly string[];
  /** Epoch milliseconds of its end. */
  readonly at: number;
  readonly durationMs: number;
}

/** Requests within this time share a heartbeat. */
const COALESCE_MS = 250;
const RETRY_MS_MIN = 1000;
const RETRY_MS_MAX = 10 * 60_000;
/** Longest wait between tries while no model is available; the check is cheap. */
const UNTRIED_MS_MAX = 60_000;
const RUNS = "another one runs";
const NOT_LEADING = "another node leads by now";
/**
 * A request that this node forwarded counts as its own if it becomes the leader within this time, because there may
 * have been no leader.
 */
const PASSED_ON_MS = 10_000;
/** Maximum number of reasons kept for one heartbeat. */
const REASONS_MAX = 16;

type Cancel = () => void;

/** An undeliverable answer counts as answered: the turn is stored, and asking again would change nothing. */
const isUnanswered = ({ kind, preview }: HeartbeatOutcome): boolean => kind === "failed" && preview === undefined;

export class Heartbeat {
  readonly #parts: HeartbeatParts;
  readonly #lease: Lease;
  readonly #listeners = new Set<(status: HeartbeatStatus) => void>();
  readonly #stopping = new AbortController();
  /** Aborted when this node loses the lease. */
  #lost = new AbortController();
  #reasons = new Set<string>();
  /** The last request that was passed on to the leading node. */
  #passedOn: { readonly reason: string; readonly at: number } | undefined;
  #running: Promise<void> | undefined;
  #last: HeartbeatStatus | undefined;
  /** Time of the timer's last tick, skipped ones included. */
  #tickedAt: number;
  /** Time of the timer's last heartbeat: events that waited then are due, until a turn fails. */
  #checkedAt: number | undefined;
  #failures = 0;
  /** Reason of the last failure; the log states each reason once. */
  #loggedFailure: string | undefined;
  #stopListening = (): void => {};
  #cancelTick: Cancel | undefined;
  #cancelWake: Cancel | undefined;
  #cancelRetry: Cancel | undefined;

  constructor(parts: HeartbeatParts) {
    this.#parts = parts;
    this.#lease = parts.peers.lease("heartbeat");
    this.#tickedAt = parts.clock.now();
  }

  /** Starts beating on the leading node, and continues where the last run of the server stopped. */
  async start(): Promise<void> {
    this.#stopListening = this.#parts.peers.onNews((topic) => {
      if (topic === "heartbeat") void this.#look("another node");
      if (topic === "all") void this.#look("events that waited");
    });
    this.#lease.onChange((isHeld) => {
      if (isHeld) void this.#begin().catch(() => this.request("the node leads now"));
      else this.#lose();
    });
    if (this.#lease.isHeld) await this.#begin();
  }

  async #begin(): Promise<void> {
    const { store, clock } = this.#parts;
    const last = await store.read(() => lastHeartbeat(this.#sessionKey));
    // a clock that was set back since must not delay it
    if (last !== undefined) this.#tickedAt = Math.min(last, clock.now());
    this.reschedule();
    const passedOn = this.#passedOn;
    this.#passedOn = undefined;
    if (passedOn && Math.abs(clock.now() - passedOn.at) < PASSED_ON_MS) this.request(passedOn.reason);
    await this.#look("events that waited for the server");
  }

  async #look(reason: string): Promise<void> {
    const isWanted = this.#lease.isHeld && (this.#reasons.size > 0 || (await this.#isWanted()));
    if (isWanted) this.request(reason);
  }

  #lose(): void {
    this.#cancelAll();
    this.#lost.abort();
    this.#lost = new AbortController();
  }

  #cancelAll(): void {
    for (const cancel of [this.#cancelTick, this.#cancelWake, this.#cancelRetry]) cancel?.();
    this.#cancelTick = this.#cancelWake = this.#cancelRetry = undefined;
  }

  /** Requests a heartbeat, now or at the end of a pause. */
  request(reason: string): void {
    if (this.#stopping.signal.aborted) return;
    if (!this.#lease.isHeld) {
      this.#passedOn = { reason, at: this.#parts.clock.now() };
      this.#parts.peers.tell("heartbeat");
      return;
    }
    if (this.#reasons.size < REASONS_MAX) this.#reasons.add(reason);
    if (this.#cancelWake) return;
    this.#cancelWake = this.#parts.clock.after(COALESCE_MS, () => {
      this.#cancelWake = undefined;
      // after the run or the pause, the reasons are checked again
      if (this.#running || this.#parts.peers.isPaused || !this.#lease.isHeld) return;
      this.#run(this.#takeReasons());
    });
  }

  /** Call it when the configuration has changed. */
  reschedule(): void {
    this.#cancelTick?.();
    this.#cancelTick = undefined;
    const { every } = this.#config;
    if (every === 0 || this.#stopping.signal.aborted || !this.#lease.isHeld) return;
    const { clock } = this.#parts;
    const tickedAt = Math.min(this.#tickedAt, clock.now()); // a clock may be set back
    this.#cancelTick = clock.after(Math.max(0, tickedAt + every - clock.now()), () => this.#tick());
  }

  /** Calls `listener` with every status; returns a function that stops it. */
  onStatus(listener: (status: HeartbeatStatus) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** The last status; undefined before the first. */
  get status(): HeartbeatStatus | undefined {
    return this.#last;
  }

  /** True if answers should be sent and have no target. */
  async isUnheard(): Promise<boolean> {
    const { store, delivery } = this.#parts;
    const config = this.#config;
    return config.target !== "none" && "reason" in (await store.read(() => heartbeatTarget(config, delivery)));
  }

  /** Stops the running heartbeat and waits for its end. Events it saw still wait when the server starts again. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#stopListening();
    this.#cancelAll();
    await this.#running;
  }

  get #config() {
    return this.#parts.settings().agents.defaults.heartbeat;
  }

  get #sessionKey(): string {
    return mainSessionKey(this.#parts.settings().session);
  }

  #takeReasons(): readonly string[] {
    const reasons = [...this.#reasons];
    this.#reasons = new Set();
    return reasons;
  }

  #tick(): void {
    const startedAt = this.#parts.clock.now();
    const reasons = ["timer"];
    this.#tickedAt = startedAt;
    this.#cancelTick = undefined;
    const reason = this.#whyNotNow();
    if (reason === undefined || reason === RUNS) this.#checkedAt = startedAt;
    if (reason === undefined) this.#run(reasons);
    else this.#tell({ kind: "skipped", reason }, { reasons, startedAt });
    this.reschedule();
  }

  /** The reason to skip this tick of the timer; undefined: run. */
  #whyNotNow(): string | undefined {
    const { clock, peers } = this.#parts;
    if (!this.#lease.isHeld) return NOT_LEADING; // a suspended process hears that late
    if (!isActive(this.#config.activeHours, clock.now())) return "outside of active hours";
    if (peers.isPaused) return "turns are paused";
    return this.#running && RUNS;
  }

  #run(reasons: readonly string[]): void {
    this.#cancelRetry?.();
    this.#cancelRetry = undefined;
    const startedAt = this.#parts.clock.now();
    this.#running = this.#beat()
      .catch((error: unknown): HeartbeatOutcome => ({ kind: "failed", reason: messageOf(error) }))
      .then(async (outcome) => {
        if (isUnanswered(outcome)) this.#checkedAt = undefined;
        const isWanted = await this.#isWanted();
        this.#running = undefined;
        if (this.#stopping.signal.aborted) return;
        this.#tell(outcome, { reasons, startedAt });
        this.#goOn(outcome, isWanted);
      });
  }

  async #beat(): Promise<HeartbeatOutcome> {
    const { agent, store, clock, settings, delivery } = this.#parts;
    const { agents } = settings();
    const config = agents.defaults.heartbeat;
    const sessionKey = this.#sessionKey;
    const hasEvents = (await store.read(() => waitingEvents({ sessionKey, limit: 1 }))).length > 0;
    const prompt = heartbeatPrompt(config.prompt, hasEvents);
    if (prompt === undefined) return { kind: "skipped", reason: "no events wait, and there is no prompt" };
    const lost = this.#lost;
    const request = {
      runId: Bun.randomUUIDv7(),
      sessionKey,
      prompt,
      tools: [...(turnSettings(agents, DEFAULT_AGENT)?.tools ?? []), ...config.tools],
      signal: AbortSignal.any([this.#stopping.signal, lost.signal]),
      checkTime: () => void (this.#lease.isHeld || lost.abort()),
      ...(config.model === undefined ? {} : { model: config.model }),
    };
    const result = await agent.run(request);
    if (result.status !== "ok") {
      if (lost.signal.aborted) return { kind: "skipped", reason: NOT_LEADING };
      const { isUntried = false } = result;
      return { kind: "failed", reason: result.error ?? result.status, ...(isUntried ? { isUntried } : {}) };
    }
    const reply = { ...request, result, config, now: clock.now() };
    const outcome = await store.write(() => this.#conclude(reply));
    if (outcome.kind === "sent") delivery.sendReplies();
    return outcome;
  }

  *#conclude(reply: Reply): Transaction<HeartbeatOutcome> {
    if (yield* this.#lease.holds()) return yield* concludeHeartbeat(reply, this.#parts.delivery);
    return { kind: "skipped", reason: NOT_LEADING };
  }

  /** Starts the next heartbeat if events were left over, or requests came meanwhile. */
  #goOn(outcome: HeartbeatOutcome, isWanted: boolean): void {
    const { clock } = this.#parts;
    const isToRetry = isUnanswered(outcome) && isWanted;
    this.#failures = isToRetry ? this.#failures + 1 : 0;
    if (this.#reasons.size > 0) this.request("requests while another one ran");
    else if (isToRetry) {
      const longestMs = outcome.isUntried ? UNTRIED_MS_MAX : RETRY_MS_MAX;
      const delayMs = Math.min(longestMs, RETRY_MS_MIN * 2 ** (this.#failures - 1));
      this.#cancelRetry = clock.after(delayMs, () => this.request("another try"));
    } else if (isWanted) this.request("more events wait");
  }

  /** True if an event waits for a heartbeat, or if the database fails: the next heartbeat asks again. */
  #isWanted(): Promise<boolean> {
    return this.#parts.store.read(() => wantsHeartbeat(this.#sessionKey, this.#checkedAt)).catch(() => true);
  }

  #tell(outcome: HeartbeatOutcome, { reasons, startedAt }: { reasons: readonly string[]; startedAt: number }): void {
    const { clock, log } = this.#parts;
    const at = clock.now();
    this.#last = { ...outcome, reasons, at, durationMs: at - startedAt };
    const { preview: _, ...fields } = this.#last;
    const isNews = outcome.kind === "failed" && outcome.reason !== this.#loggedFailure;
    if (outcome.kind !== "skipped") this.#loggedFailure = outcome.kind === "failed" ? outcome.reason : undefined;
    log[isNews ? "warn" : "debug"]("heartbeat", fields);
    for (const listener of this.#listeners) listener(this.#last);
  }
}
