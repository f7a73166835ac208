/**
 * Executes accepted requests, in rounds: recovers runs of dead processes, posts events, settles replies, starts turns,
 * sends callbacks. Every decision is committed before it is acted on, so that the process can be killed at any moment
 * and the next one continues; a turn is repeated only if its answer was not stored.
 */
import { type Logger, messageOf, setBackDetector } from "../../../../base/index.ts";
import type { Peers, Topic } from "../../../database/peers.ts";
import type { Transaction, Store } from "../../../database/store.ts";
import { FailureLog } from "../../../database/failure-log.ts";
import { runStatus } from "../deliveries/queries.ts";
import type { Posting } from "../deliveries/posting.ts";
import { dueAfterSetBack, nextTurnAt } from "../deliveries/claims.ts";
import type { Run } from "../deliveries/runs.ts";
import { isFinal } from "../deliveries/state.ts";
import { cancelRun, recallReply, type Cancelled } from "./cancel.ts";
import { CallbackSender, type CallbackSettings } from "./callback-sender.ts";
import { wantsHeartbeat, type Context } from "./conclude.ts";
import { dismissWorker, needsRecovery, recover, registerWorker, type Recovery } from "./crashes.ts";
import { EventPoster, NOTHING_POSTED } from "./event-poster.ts";
import { logEnd, observeEnd, posted, type FinalRun, type RunObserver } from "./observer.ts";
import type { WorkerPorts } from "./ports.ts";
import { ReplySettler } from "./reply-settler.ts";
import { resendReply } from "./resend.ts";
import { TurnRunner, type TurnLimits } from "./turn-runner.ts";
import { RunWatchers, type RunNews } from "./watch.ts";

/** Interval of looking for runs of dead processes. */
const LOOK_MS = 30_000;
/** Delay after a failed write, or while the events are full. */
const STUCK_MS = 1000;
/** A node receives a run's text for this long after it asked for it. */
const WATCHED_MS = 30_000;

export interface WorkerSettings extends TurnLimits {
  readonly callbacks: CallbackSettings;
}

export interface WorkerDeps {
  readonly store: Store;
  readonly peers: Peers;
  readonly ports: WorkerPorts;
  readonly settings: () => WorkerSettings;
  readonly log: Logger;
  readonly now: () => number;
  /** From 0 up to 1: spreads retries. */
  readonly random: () => number;
  /** Called when runs, replies and callbacks end, for metrics. */
  readonly observer?: RunObserver;
}

export class Worker {
  readonly #deps: WorkerDeps;
  readonly #watchers = new RunWatchers();
  readonly #turns: TurnRunner;
  readonly #events: EventPoster;
  readonly #replies: ReplySettler;
  readonly #callbacks: CallbackSender;
  #state: "new" | "working" | "stopped" = "new";
  #round: Promise<void> | undefined;
  #again = false;
  /** Runs whose text other nodes read, and the end of that time, by `performance.now()`. */
  readonly #watchedUntil = new Map<string, number>();
  /** The owner name under which it is registered. */
  #registeredAs: string | undefined;
  #wakeAt: Timer | undefined;
  #stopListening = (): void => {};
  readonly #isSetBack: () => boolean;
  readonly #failures = new FailureLog("hooks: processing deliveries failed");

  constructor(deps: WorkerDeps) {
    this.#deps = deps;
    this.#isSetBack = setBackDetector(deps.now);
    this.#events = new EventPoster(deps);
    this.#turns = new TurnRunner({
      ...deps,
      onText: (runId, text) => this.#text(runId, text),
      onBegun: (runId) => this.#tell(runId),
      onEnded: (runId, run) => this.#turnEnded(runId, run),
    });
    this.#replies = new ReplySettler({
      ...deps,
      context: () => this.#context(),
      onEnded: (runId) => this.#tell(runId),
      makeRoom: () => this.#makeRoom(),
    });
    this.#callbacks = new CallbackSender({
      ...deps,
      lease: deps.peers.lease("callbacks"),
      settings: () => deps.settings().callbacks,
      onTried: (outcome) => deps.observer?.callbackTried(outcome),
      onSettled: () => this.poke(),
    });
  }

  /** Recovers the runs of earlier processes, and works until `stop`. */
  start(): void {
    this.#state = "working";
    const { ports, peers } = this.#deps;
    const ends = [
      ports.onReplySettled((groupId) => {
        this.#replies.ended(groupId);
        this.poke();
      }),
      peers.onNews((...news) => this.#hear(...news)),
      peers.onLost(() => this.#turns.loseAll()),
    ];
    this.#stopListening = () => ends.forEach((end) => end());
    if (this.isPaused) this.#deps.log.warn("hooks: still paused: no turn begins until 'hearth hooks resume'");
    this.poke();
  }

  #hear(topic: Topic, id: string, text: string): void {
    switch (topic) {
      case "run":
        if (this.#watchers.has(id)) this.#deps.peers.tell("watch", id); // its turn may have begun there
        return this.#watchers.changed(id);
      case "text":
        return this.#watchers.text(id, text);
      case "watch":
        if (this.#turns.hasBegun(id)) this.#watchedUntil.set(id, performance.now() + WATCHED_MS);
        return;
      case "cancel":
        return this.#turns.cancel(id);
      case "all":
        this.#replies.lookAtAll();
        this.#watchers.allChanged();
        return this.poke();
      case "turns":
      case "callbacks":
        return this.poke();
    }
  }

  get isPaused(): boolean {
    return this.#deps.peers.isPaused;
  }

  /** While paused, no turn begins on any node; running ones continue, and new requests wait. */
  setPaused(isPaused: boolean): Promise<void> {
    return this.#deps.peers.setPaused(isPaused);
  }

  /** Looks for work soon. Cheap, and harmless without work. */
  poke(): void {
    if (this.#state !== "working") return;
    this.#again = true;
    this.#round ??= this.#rounds().finally(() => {
      this.#round = undefined;
      if (this.#again) this.poke(); // requested since the last look
    });
  }

  /** Posts events of new runs in the transaction that makes them. */
  *posting(): Transaction<Posting> {
    const events = this.#state === "working" ? yield* this.#events.ofNew() : NOTHING_POSTED;
    return { ...events, after: this.#afterPosting };
  }

  readonly #afterPosting: Posting["after"] = (runs, isOver) => {
    for (const run of runs.filter(isOver)) this.#ended(posted(run)); // a new run has no watcher yet
    if (runs.every(isOver)) return;
    this.poke();
    this.#deps.peers.tell("turns");
  };

  /** A run's status, then its news until nothing but a callback can change. */
  async *watch(runId: string, signal?: AbortSignal): AsyncGenerator<RunNews> {
    const { store, peers } = this.#deps;
    const ask = (): void => peers.tell("watch", runId);
    const asking = setInterval(() => {
      ask();
      this.#watchers.changed(runId); // another node's news may have been missed
    }, WATCHED_MS / 3);
    ask();
    try {
      yield* this.#watchers.watch(runId, () => store.read(() => runStatus(runId)), signal);
    } finally {
      clearInterval(asking);
    }
  }

  /** Sends a piece of a run's text to its watchers, here and on other nodes. */
  #text(runId: string, text: string): void {
    this.#watchers.text(runId, text);
    const until = this.#watchedUntil.get(runId);
    if (until !== undefined && performance.now() < until) this.#deps.peers.tell("text", runId, text);
  }

  /** Cancels a run: a waiting one at once, a running one soon. Undefined: there is no such run. */
  async cancel(runId: string): Promise<Cancelled | undefined> {
    const { store, ports } = this.#deps;
    const result = await store.write(() => cancelRun(runId, this.#context()));
    if (result === "replying") return await recallReply(ports, runId);
    if (result === "stopping") {
      this.#turns.cancel(runId);
      this.#deps.peers.tell("cancel", runId);
    }
    if (typeof result !== "object") return result;
    if (isFinal(result.state)) this.#ended(result);
    this.#changed(runId);
    return "cancelled";
  }

  /** Sends a failed reply again, without a new turn. Throws `not_found` or `conflict`. */
  async resend(runId: string): Promise<void> {
    const { store, ports } = this.#deps;
    await store.write(() => resendReply(runId, this.#context()));
    ports.sendReplies();
    this.#tell(runId);
  }

  /**
   * Starts nothing more, lets running turns finish for a while, then stops them and returns their runs to the queue for
   * the next process.
   */
  async stop(graceMs: number): Promise<void> {
    if (this.#state === "stopped") return;
    this.#state = "stopped";
    clearTimeout(this.#wakeAt);
    this.#stopListening();
    const callbacksStopped = this.#callbacks.stop(); // before the round continues, which would send some
    await this.#round;
    await Promise.all([this.#turns.stop(graceMs), callbacksStopped]);
    if (this.#registeredAs !== undefined) await this.#dismiss(this.#registeredAs);
    this.#deps.peers.tell("turns");
  }

  /** If this fails, the next start counts a crash during which nothing ran. */
  async #dismiss(owner: string): Promise<void> {
    const { store, log } = this.#deps;
    await store
      .write(() => dismissWorker(owner))
      .catch((error: unknown) => log.warn("hooks: storing the clean shutdown failed", { error: messageOf(error) }));
  }

  #context(): Context {
    return { ports: this.#deps.ports, now: this.#deps.now() };
  }

  #changed(runId: string): void {
    this.#tell(runId);
    this.poke();
  }

  /** Tells watchers, here and on other nodes, that a run changed. */
  #tell(runId: string): void {
    this.#watchers.changed(runId);
    this.#deps.peers.tell("run", runId);
  }

  #turnEnded(runId: string, run: Run | undefined): void {
    this.#watchedUntil.delete(runId);
    if (run && isFinal(run.state)) this.#announce(run);
    if (run?.reply === "pending") this.#deps.ports.sendReplies();
    this.#changed(runId);
  }

  /** Called after the commit that made a run final. */
  #announce(run: FinalRun): void {
    this.#tell(run.id);
    this.#ended(run);
  }

  #ended(run: FinalRun): void {
    logEnd(this.#deps.log, run);
    observeEnd(this.#deps.observer, run);
    if (run.action.kind === "agent" && run.action.callbackUrl !== undefined) this.#deps.peers.tell("callbacks");
    if (wantsHeartbeat(run.action)) this.#deps.ports.requestHeartbeat(`hook:${run.id}`);
  }

  async #rounds(): Promise<void> {
    while (this.#again && this.#state === "working") {
      this.#again = false;
      try {
        await this.#oneRound();
        this.#failures.succeeded(this.#deps.log);
      } catch (error) {
        this.#failures.failed(error, this.#deps.log);
        this.#lookIn(STUCK_MS);
      }
    }
  }

  async #oneRound(): Promise<void> {
    const { store, now } = this.#deps;
    await this.#recover();
    if (this.#isSetBack()) await store.write(() => dueAfterSetBack(now(), { isSeen: true }));
    await this.#postEvents();
    const areRepliesStuck = await this.#replies.settle();
    const mayBegin = (): boolean => this.#state === "working" && !this.isPaused;
    if (mayBegin()) await this.#turns.begin(mayBegin);
    await this.#callbacks.send();
    const turnAt = this.isPaused ? undefined : await store.read(() => nextTurnAt(now()));
    const at = Math.min(turnAt ?? Infinity, (await this.#callbacks.nextAt()) ?? Infinity);
    const longestMs = this.#events.isHeldUp || areRepliesStuck ? STUCK_MS : LOOK_MS;
    this.#lookIn(Math.max(1, Math.min(at - now(), longestMs)));
  }

  #lookIn(ms: number): void {
    clearTimeout(this.#wakeAt);
    if (this.#state === "working") this.#wakeAt = setTimeout(() => this.poke(), ms);
  }

  /** Recovers runs of former processes; registers this one the first time. */
  async #recover(): Promise<void> {
    const { store, log } = this.#deps;
    const { me } = this.#deps.peers;
    const isNeeded = this.#registeredAs !== me || (await store.read(() => needsRecovery(this.#recovery())));
    if (!isNeeded) return; // usually there is nothing to write
    const taken = await store.write(() => this.#takeUp(me));
    this.#registeredAs = me;
    if (taken.length === 0) return;
    log.warn("hooks: took over runs of a server that ended", { runs: taken.length });
    for (const run of taken) {
      if (isFinal(run.state)) this.#announce(run);
      else this.#tell(run.id);
    }
    this.#deps.peers.tell("turns");
  }

  *#takeUp(me: string): Transaction<Run[]> {
    const now = this.#deps.now();
    yield* registerWorker(me, now);
    yield* dueAfterSetBack(now, { isSeen: false }); // none of its turns ran here
    return yield* recover(this.#recovery());
  }

  #recovery(): Recovery {
    const { maxAttempts } = this.#deps.settings();
    const { peers } = this.#deps;
    const hasSurvived = this.#registeredAs !== undefined;
    return { peers, hasSurvived, turns: this.#turns, maxAttempts, context: this.#context() };
  }

  async #postEvents(): Promise<void> {
    const { store } = this.#deps;
    while (await store.read(() => this.#events.isDue())) {
      const { ended, isHastened } = await store.write(() => this.#events.post());
      for (const run of ended) this.#announce(run);
      if (isHastened) this.#makeRoom();
    }
  }

  /** A heartbeat removes the events that it has shown. */
  #makeRoom(): void {
    this.#deps.log.warn("hooks: the main session has no room for more events: requested a heartbeat");
    this.#deps.ports.requestHeartbeat("events have no room");
  }
}
