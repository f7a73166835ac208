/** Watches replies under way: stores their outcomes with their runs, and reports them. */
import type { Peers } from "../../../database/peers.ts";
import type { Transaction, Store } from "../../../database/store.ts";
import { findRun, pendingReplies, replyChannelOf, type Run } from "../deliveries/runs.ts";
import { settleReply, wantsHeartbeat, type Context } from "./conclude.ts";
import type { RunObserver } from "./observer.ts";
import type { ReplyOutcome, WorkerPorts } from "./ports.ts";

export interface ReplySettlerDeps {
  readonly store: Store;
  readonly peers: Peers;
  readonly ports: WorkerPorts;
  readonly observer?: RunObserver;
  readonly context: () => Context;
  /** The run's reply ended, or goes to its next target. */
  readonly onEnded: (runId: string) => void;
  /** Starts a heartbeat, which makes room for events. */
  readonly makeRoom: () => void;
}

/** A reply that ended for good. */
interface SettledReply {
  readonly run: Run;
  readonly kind: ReplyOutcome["kind"];
}

interface Settled {
  /** Runs without room for their event. */
  readonly stuck: readonly Run[];
  readonly settled: readonly SettledReply[];
  readonly isHastened: boolean;
}

export class ReplySettler {
  readonly #deps: ReplySettlerDeps;
  /** Runs whose reply may have ended; undefined: check all. */
  #known: Set<string> | undefined = undefined;

  constructor(deps: ReplySettlerDeps) {
    this.#deps = deps;
  }

  ended(runId: string): void {
    this.#known?.add(runId);
  }

  /** Checks all, because news may have been missed. */
  lookAtAll(): void {
    this.#known = undefined;
  }

  /** Returns true if some wait for room among the events. */
  async settle(): Promise<boolean> {
    const { store, peers, ports, onEnded, makeRoom } = this.#deps;
    const known = this.#known;
    this.#known = new Set(); // collects replies that end from here on
    try {
      const ended = await store.read(() => this.#endedOf(known));
      if (ended.length === 0) return false;
      const { stuck, settled, isHastened } = await store.write(() => this.#settleAll(ended));
      ports.sendReplies(); // some replies are sent to their next target
      for (const runId of ended) onEnded(runId);
      for (const { id } of stuck) this.#known?.add(id);
      if (isHastened) makeRoom();
      if (settled.length > 0) peers.tell("callbacks");
      for (const each of settled) this.#tell(each);
      return stuck.length > 0;
    } catch (error) {
      this.lookAtAll();
      throw error;
    }
  }

  #tell({ run, kind }: SettledReply): void {
    const { observer, ports } = this.#deps;
    observer?.replyEnded(kind, replyChannelOf(run));
    if (kind !== "sent" && wantsHeartbeat(run.action)) ports.requestHeartbeat(`reply:${run.id}`);
  }

  /** @param among undefined: all runs with a reply under way */
  *#endedOf(among: ReadonlySet<string> | undefined): Transaction<string[]> {
    const ended: string[] = [];
    for (const runId of among ?? (yield* pendingReplies())) {
      if ((yield* this.#deps.ports.replyOutcome(runId)) !== undefined) ended.push(runId);
    }
    return ended;
  }

  *#settleAll(runIds: readonly string[]): Transaction<Settled> {
    const { ports, context } = this.#deps;
    const stuck: Run[] = [];
    const settled: SettledReply[] = [];
    for (const runId of runIds) {
      const run = yield* findRun(runId);
      const outcome = yield* ports.replyOutcome(runId);
      if (run?.reply !== "pending" || !outcome) continue;
      if (!(yield* settleReply(run, outcome, context()))) stuck.push(run);
      else if ((yield* ports.replyOutcome(runId)) !== undefined) settled.push({ run, kind: outcome.kind });
    }
    const isAwaited = stuck.some(({ action }) => wantsHeartbeat(action));
    return { stuck, settled, isHastened: isAwaited && (yield* ports.hastenEvents()) };
  }
}
