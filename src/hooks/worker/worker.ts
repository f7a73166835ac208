/**
 * Does what accepted requests ask for. It works in rounds: take up what dead processes left, post events, look after
 * replies, begin turns, send callbacks. Everything it decides is committed before it acts on it, so that it can be
 * killed at any moment and the next process goes on; a turn is run again only if its answer was not stored.
 */
import type { Database, Writer } from "../../base/database.ts";
import { messageOf } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import { runStatus } from "../deliveries/queries.ts";
import type { RunStatus } from "../deliveries/run-status.ts";
import { hasDueTurn, nextTurnAt } from "../deliveries/claims.ts";
import { dueEvents, findRun, pendingReplies, replyChannelOf, type Run } from "../deliveries/runs.ts";
import { isFinal } from "../deliveries/state.ts";
import type { CallbackOutcome } from "../callback.ts";
import { CallbackSender, type CallbackSettings } from "./callback-sender.ts";
import { giveUp, settleReply, wantsHeartbeat, type Context } from "./conclude.ts";
import { dismissWorker, needsRecovery, recover, registerWorker, type Recovery } from "./crashes.ts";
import { EventPoster } from "./event-poster.ts";
import { makeOwner } from "./owner.ts";
import type { ReplyOutcome, WorkerPorts } from "./ports.ts";
import { TurnRunner, type TurnLimits } from "./turn-runner.ts";
import { RunWatchers, type RunNews } from "./watch.ts";

/** How often to look for runs of other processes that ended. */
const LOOK_MS = 30_000;
/** How long to wait after the database could not be written, or the events were full. */
const STUCK_MS = 1000;

/** Settings as they are now. */
export interface WorkerSettings extends TurnLimits {
  readonly callbacks: CallbackSettings;
}

export interface WorkerDeps {
  readonly db: Database;
  readonly writer: Writer;
  readonly ports: WorkerPorts;
  readonly settings: () => WorkerSettings;
  readonly log: Logger;
  readonly now: () => number;
  /** From 0 up to 1: spreads retries. */
  readonly random: () => number;
  /** Is called when runs, replies and callbacks end, for metrics. */
  readonly observer?: RunObserver;
}

/** A finished run as observers get it. */
export type EndedRun = Pick<RunStatus, "kind" | "state" | "createdAt" | "startedAt" | "finishedAt">;

export interface RunObserver {
  /** @param lane what the run competed as */
  runEnded(run: EndedRun, lane: string): void;
  /** @param outcome `skipped`: it was only an acknowledgement */
  replyEnded(outcome: ReplyOutcome["kind"] | "skipped", channel: string): void;
  callbackTried(outcome: CallbackOutcome["kind"]): void;
}

/** What asking for a run's end led to. `over`: its turn had ended already. */
export type Cancelled = "cancelled" | "stopping" | "over";

export class Worker {
  readonly #deps: WorkerDeps;
  readonly #owner = makeOwner();
  readonly #watchers = new RunWatchers();
  readonly #turns: TurnRunner;
  readonly #events: EventPoster;
  readonly #callbacks: CallbackSender;
  /** Runs whose reply may have ended; undefined: all that wait for theirs. */
  #replies: Set<string> | undefined = undefined;
  #state: "new" | "working" | "stopped" = "new";
  #round: Promise<void> | undefined;
  #again = false;
  #isRegistered = false;
  #wakeAt: Timer | undefined;
  #stopListening = (): void => {};

  constructor(deps: WorkerDeps) {
    this.#deps = deps;
    this.#events = new EventPoster(deps);
    this.#turns = new TurnRunner({
      ...deps,
      owner: this.#owner,
      onText: (runId, text) => this.#watchers.text(runId, text),
      onBegun: (runId) => this.#watchers.changed(runId),
      onEnded: (runId, run) => this.#turnEnded(runId, run),
    });
    this.#callbacks = new CallbackSender({
      ...deps,
      settings: () => deps.settings().callbacks,
      onTried: (outcome) => deps.observer?.callbackTried(outcome),
      onSettled: () => this.poke(),
    });
  }

  /** Takes up what an earlier process left, and goes on until `stop`. */
  start(): void {
    this.#state = "working";
    this.#stopListening = this.#deps.ports.onReplySettled((groupId) => {
      this.#replies?.add(groupId);
      this.poke();
    });
    this.poke();
  }

  /** Looks for work soon. Cheap, and harmless where there is none. */
  poke(): void {
    if (this.#state !== "working") return;
    this.#again = true;
    this.#round ??= this.#rounds().finally(() => {
      this.#round = undefined;
      if (this.#again) this.poke(); // asked for between the last look and now
    });
  }

  /**
   * Does at once what needs no model, in the transaction that accepts it, so that it costs no second one. Call what it
   * returns after the commit.
   */
  begin(db: Database): () => void {
    const posted = this.#state === "working" ? this.#postAlongside(db) : [];
    const isMoreDue = dueEvents(db, 1).length > 0 || hasDueTurn(db, this.#deps.now());
    return () => {
      for (const run of posted) this.#announce(run);
      if (isMoreDue) this.poke();
    };
  }

  /** Acceptance stands whatever becomes of this: what fails here is tried again, and logged, in the next round. */
  #postAlongside(db: Database): readonly Run[] {
    try {
      return db.transaction(() => this.#events.post(db))();
    } catch {
      return [];
    }
  }

  /** How a run stands, then its news until nothing changes any more but a callback. */
  watch(runId: string, signal?: AbortSignal): AsyncGenerator<RunNews> {
    return this.#watchers.watch(runId, () => runStatus(this.#deps.db, runId), signal);
  }

  /** Ends a run: at once where it waits, soon where its model works. Undefined: there is no such run. */
  async cancel(runId: string): Promise<Cancelled | undefined> {
    const result = await this.#deps.writer.write((db): Cancelled | Run | undefined => {
      const run = findRun(db, runId);
      if (!run) return undefined;
      if (isFinal(run.state) || (run.step === "event" && run.action.kind === "agent")) return "over";
      if (run.state === "running") {
        db.query("UPDATE runs SET cancel_at = ? WHERE id = ?").run(this.#deps.now(), runId);
        return "stopping";
      }
      return giveUp(db, run, { outcome: "cancelled", reason: "cancelled before it ran" }, this.#context());
    });
    if (result === "stopping") this.#turns.cancel(runId);
    if (typeof result !== "object") return result;
    this.#observe(result);
    this.#changed(runId);
    return "cancelled";
  }

  /**
   * Begins nothing more, lets turns that run finish for a while, then stops them and gives their runs back, to be run
   * again by the next process.
   */
  async stop(graceMs: number): Promise<void> {
    if (this.#state === "stopped") return;
    this.#state = "stopped";
    clearTimeout(this.#wakeAt);
    this.#stopListening();
    await this.#round;
    await Promise.all([this.#turns.stop(graceMs), this.#callbacks.stop()]);
    if (this.#isRegistered) await this.#dismiss();
  }

  /** Where that cannot be stored, the next start counts a crash in which nothing ran. */
  async #dismiss(): Promise<void> {
    const { writer, log } = this.#deps;
    await writer
      .write((db) => dismissWorker(db, this.#owner))
      .catch((error: unknown) => log.warn("hooks: the end cannot be stored", { error: messageOf(error) }));
  }

  #context(): Context {
    return { ports: this.#deps.ports, now: this.#deps.now() };
  }

  #changed(runId: string): void {
    this.#watchers.changed(runId);
    this.poke();
  }

  #turnEnded(runId: string, run: Run | undefined): void {
    if (run && isFinal(run.state)) this.#announce(run);
    if (run?.reply === "pending") this.#deps.ports.sendReplies();
    this.#changed(runId);
  }

  /** After the commit that made a run final. */
  #announce(run: Run): void {
    this.#observe(run);
    this.#watchers.changed(run.id);
    if (wantsHeartbeat(run.action)) this.#deps.ports.requestHeartbeat(`hook:${run.id}`);
  }

  #observe(run: Run): void {
    const { observer, db } = this.#deps;
    if (!observer) return;
    observer.runEnded({ ...run, kind: run.action.kind }, run.lane);
    if (run.reply === "failed" || run.reply === "skipped") observer.replyEnded(run.reply, replyChannelOf(db, run));
  }

  async #rounds(): Promise<void> {
    while (this.#again && this.#state === "working") {
      this.#again = false;
      try {
        await this.#oneRound();
      } catch (error) {
        this.#deps.log.error("hooks: deliveries cannot be worked on", { error: messageOf(error) });
        this.#lookIn(STUCK_MS);
      }
    }
  }

  async #oneRound(): Promise<void> {
    const { db, now } = this.#deps;
    await this.#recover();
    await this.#postEvents();
    const areRepliesStuck = await this.#settleReplies();
    if (this.#state === "working") await this.#turns.begin();
    this.#callbacks.send();
    const at = Math.min(nextTurnAt(db, now()) ?? Infinity, this.#callbacks.nextAt ?? Infinity);
    const longestMs = this.#events.isHeldUp || areRepliesStuck ? STUCK_MS : LOOK_MS;
    this.#lookIn(Math.max(1, Math.min(at - now(), longestMs)));
  }

  #lookIn(ms: number): void {
    clearTimeout(this.#wakeAt);
    if (this.#state === "working") this.#wakeAt = setTimeout(() => this.poke(), ms);
  }

  /** Takes up what former processes left; says, the first time, that this one is there. */
  async #recover(): Promise<void> {
    const { db, writer, log, now } = this.#deps;
    if (this.#isRegistered && !needsRecovery(db, this.#recovery())) return; // the usual case writes nothing
    const taken = await writer.write((at) => {
      registerWorker(at, this.#owner, now());
      return recover(at, this.#recovery());
    });
    this.#isRegistered = true;
    if (taken.length === 0) return;
    log.warn("hooks: runs that nobody had any more are taken up again", { runs: taken.length });
    for (const run of taken) {
      if (isFinal(run.state)) this.#announce(run);
      else this.#watchers.changed(run.id);
    }
  }

  #recovery(): Recovery {
    const { maxAttempts } = this.#deps.settings();
    return { owner: this.#owner, turns: this.#turns, maxAttempts, context: this.#context() };
  }

  async #postEvents(): Promise<void> {
    const { db, writer } = this.#deps;
    while (this.#events.isDue(db)) {
      for (const run of await writer.write((at) => this.#events.post(at))) this.#announce(run);
    }
  }

  /** Returns whether some wait for room among the events. */
  async #settleReplies(): Promise<boolean> {
    const { db, writer, ports } = this.#deps;
    const waiting = this.#replies ? [...this.#replies] : pendingReplies(db);
    this.#replies = new Set(); // what ends from here on
    try {
      const ended = waiting.filter((runId) => ports.replyOutcome(db, runId) !== undefined);
      if (ended.length === 0) return false;
      const stuck = await writer.write((at) => ended.filter((runId) => !this.#settle(at, runId)));
      ports.sendReplies(); // some go elsewhere now
      for (const runId of ended) this.#watchers.changed(runId);
      for (const runId of stuck) this.#replies.add(runId);
      for (const runId of ended.filter((id) => !stuck.includes(id))) {
        const outcome = ports.replyOutcome(db, runId);
        const run = findRun(db, runId);
        if (outcome && run) this.#deps.observer?.replyEnded(outcome.kind, replyChannelOf(db, run));
      }
      return stuck.length > 0;
    } catch (error) {
      this.#replies = undefined; // the next round looks at all
      throw error;
    }
  }

  #settle(db: Database, runId: string): boolean {
    const run = findRun(db, runId);
    const outcome = this.#deps.ports.replyOutcome(db, runId);
    return run?.reply !== "pending" || !outcome || settleReply(db, run, outcome, this.#context());
  }
}
