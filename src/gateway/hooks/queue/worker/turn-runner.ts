/**
 * The turns that run now: begins those that are due within the limits, keeps their leases, stores how they end, and
 * stops them when told. What it stores, it stores only while the lease is its own.
 */
import { renderPassage } from "../../../agent/boundary/index.ts";
import { failedTurn, type TurnRequest, type TurnResult } from "../../../agent/turn.ts";
import { AppError, type Logger, messageOf } from "../../../../base/index.ts";
import type { Peers } from "../../../database/peers.ts";
import type { Script, Store } from "../../../database/store.ts";
import { Trouble } from "../../../database/trouble.ts";
import { claimTurns, hasDueTurn, renewLeases } from "../deliveries/claims.ts";
import { asTurn, findRun, moveRun, type Run, type TurnRun } from "../deliveries/runs.ts";
import type { Outcome } from "../deliveries/state.ts";
import { MAX_AGE_MS, retryDelayMs } from "./backoff.ts";
import { concludeTurn, sourceOf } from "./conclude.ts";
import { LEASE_MS } from "./crashes.ts";
import { ModelOutage } from "./model-outage.ts";
import type { WorkerPorts } from "./ports.ts";

const RENEW_MS = 10_000;
/** How long to wait after the database could not be written. */
const STUCK_MS = 1000;

export interface TurnLimits {
  /** Turns that may run at once. */
  readonly maxConcurrent: number;
  /** Turns that may run at once for a mapping; undefined: as many as there may be. */
  readonly maxConcurrentOf: (mappingId: string) => number | undefined;
  /** Turns that are begun for one run at most. */
  readonly maxAttempts: number;
}

export interface TurnRunnerDeps {
  readonly store: Store;
  readonly ports: WorkerPorts;
  readonly settings: () => TurnLimits;
  readonly log: Logger;
  readonly now: () => number;
  readonly random: () => number;
  readonly peers: Pick<Peers, "me">;
  readonly onText: (runId: string, text: string) => void;
  /** Called when a turn began. */
  readonly onBegun: (runId: string) => void;
  /** Called when a turn is over; with the run as it was stored, where it was. */
  readonly onEnded: (runId: string, run: Run | undefined) => void;
}

/** Why a turn was told to stop. `lost`: another worker has its run, or may take it. */
type StopReason = "cancel" | "drain" | "lost";

interface Running {
  /** Whose lease it has. */
  readonly owner: string | null;
  readonly controller: AbortController;
  why: StopReason | undefined;
  done: Promise<void>;
}

export class TurnRunner {
  readonly #deps: TurnRunnerDeps;
  readonly #running = new Map<string, Running>();
  /** Turns that ended and could not be stored: their runs begin again when their leases are over. */
  readonly #unstored = new Set<string>();
  readonly #outage: ModelOutage;
  readonly #renewal: Timer;
  #isDraining = false;

  /** Keeps a timer until `stop`. */
  constructor(deps: TurnRunnerDeps) {
    this.#deps = deps;
    this.#outage = new ModelOutage(deps.log);
    this.#renewal = setInterval(() => void this.#renew(), RENEW_MS);
  }

  /** Whether a run's turn runs here, or ended and is left to its lease. */
  holds({ id, leaseOwner, leaseUntil }: Run): boolean {
    const isRunning = this.#running.get(id)?.owner === leaseOwner;
    return isRunning || (this.#unstored.has(id) && (leaseUntil ?? 0) > this.#deps.now());
  }

  /** Whether a run's turn was begun here and has not been stored. */
  hasBegun(runId: string): boolean {
    return this.#running.has(runId) || this.#unstored.has(runId);
  }

  /** Begins turns that are due; resolves once they have begun. @param mayBegin asked when it is known that some are */
  async begin(mayBegin: () => boolean): Promise<void> {
    const { store, now, settings, peers } = this.#deps;
    const limits = settings();
    if (this.#running.size >= limits.maxConcurrent || !(await store.read(() => hasDueTurn(now())))) return;
    if (!mayBegin()) return;
    const claimed = await store.write(() =>
      claimTurns({
        owner: peers.me,
        now: now(),
        leaseUntil: now() + LEASE_MS,
        free: limits.maxConcurrent - this.#running.size,
        limitOf: limits.maxConcurrentOf,
      }),
    );
    for (const run of claimed) this.#begin(run);
  }

  /** Tells a model to stop; nothing where the run has no turn here. */
  cancel(runId: string): void {
    this.#tell(runId, "cancel");
  }

  /** Stops all turns: their runs are others'. */
  loseAll(): void {
    for (const runId of this.#running.keys()) this.#tell(runId, "lost");
  }

  /** Lets turns finish for a while, then stops them and gives their runs back. Begins none: that is the caller's. */
  async stop(graceMs: number): Promise<void> {
    const over = (): Promise<unknown> => Promise.all([...this.#running.values()].map(({ done }) => done));
    const { promise: graceOver, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, graceMs);
    await Promise.race([over(), graceOver]);
    clearTimeout(timer);
    this.#isDraining = true;
    for (const runId of this.#running.keys()) this.#tell(runId, "drain");
    await over();
    clearInterval(this.#renewal);
  }

  #tell(runId: string, why: StopReason): void {
    const running = this.#running.get(runId);
    if (!running) return;
    running.why ??= why;
    running.controller.abort();
  }

  #begin(run: TurnRun): void {
    const owner = run.leaseOwner;
    const running: Running = { owner, controller: new AbortController(), why: undefined, done: Promise.resolve() };
    this.#running.set(run.id, running);
    this.#unstored.delete(run.id);
    this.#deps.onBegun(run.id);
    running.done = this.#turn(run, running);
  }

  /** Never rejects. */
  async #turn(run: TurnRun, running: Running): Promise<void> {
    const { ports, onText, now } = this.#deps;
    const request = requestOf(run, { signal: running.controller.signal, onText: (text) => onText(run.id, text) });
    const result = await Promise.try(ports.runTurn, request).catch((error: unknown) => failedTurn(error));
    this.#outage.note(result, now());
    const after = await this.#stored(run, running, result);
    if (this.#running.get(run.id) === running) this.#running.delete(run.id); // else it began again under another lease
    this.#deps.onEnded(run.id, after);
  }

  /** Stores how a turn ended, however long the disk refuses; undefined where it could not, or the run is another's. */
  async #stored(run: Run, running: Running, result: TurnResult): Promise<Run | undefined> {
    const { store, log } = this.#deps;
    const trouble = new Trouble(`hooks: the end of the turn of run ${run.id} cannot be stored`);
    for (;;) {
      try {
        const after = await store.write(() => this.#storeOwn(run.id, running, result));
        trouble.over(log);
        return after;
      } catch (error) {
        trouble.met(error, log);
        const isDisk = error instanceof AppError && error.code === "storage";
        if (!isDisk || this.#isDraining) {
          this.#unstored.add(run.id);
          return undefined;
        }
        await Bun.sleep(STUCK_MS);
      }
    }
  }

  *#storeOwn(runId: string, running: Running, result: TurnResult): Script<Run | undefined> {
    const current = yield* findRun(runId);
    if (current?.state !== "running" || current.leaseOwner !== running.owner) return undefined;
    return yield* this.#store(asTurn(current), running, result);
  }

  *#store(run: TurnRun, { why }: Running, result: TurnResult): Script<Run> {
    const { ports, random, settings } = this.#deps;
    const now = this.#deps.now();
    if (result.status === "ok") {
      const isEphemeral = run.action.sessionKey === undefined;
      const { id: runId, sessionKey } = run;
      yield* ports.storeTurn({ runId, sessionKey, record: result.record, isEphemeral, now });
      return yield* concludeTurn(run, { outcome: "ok", result }, { ports, now });
    }
    const isUnwanted = why === "cancel" || run.cancelAt !== null; // whoever wants it ended may not have been heard yet
    if (!isUnwanted && (why === "drain" || why === "lost")) {
      return yield* moveRun(run, "release", now, { attempts: run.attempts - 1 });
    }
    const ending = (outcome: Outcome, reason: string): Script<Run> =>
      concludeTurn(run, { outcome, reason }, { ports, now });
    const error = result.error ?? "the turn failed";
    if (isUnwanted || result.status === "cancelled") return yield* ending("cancelled", "cancelled while it ran");
    if (result.status === "timeout") return yield* ending("timeout", error);
    if (!result.isTemporary) return yield* ending("error", error);
    const isTooOld = now - run.createdAt > MAX_AGE_MS;
    if (result.isUntried && !isTooOld) {
      const nextAt = now + this.#outage.delayMs(result, { nowMs: now, random: random() });
      return yield* moveRun(run, "retry", now, { nextAt, attempts: run.attempts - 1, reason: error });
    }
    if (isTooOld || run.attempts - run.crashes >= settings().maxAttempts) return yield* ending("dead", error);
    return yield* moveRun(run, "retry", now, { nextAt: now + retryDelayMs(run.attempts, random), reason: error });
  }

  async #renew(): Promise<void> {
    if (this.#running.size === 0) return;
    const { store, now, peers, log } = this.#deps;
    const runIds = [...this.#running.keys()];
    try {
      const lease = { owner: peers.me, until: now() + LEASE_MS };
      const { unwanted, lost } = await store.write(() => renewLeases(runIds, lease));
      for (const runId of unwanted) this.cancel(runId);
      for (const runId of lost) this.#tell(runId, "lost");
    } catch (error) {
      log.warn("hooks: leases cannot be renewed", { error: messageOf(error) });
    }
  }
}

/** What the agent is asked for a run: its prompt is behind the safety boundary, and the agent keeps its time. */
function requestOf(run: TurnRun, own: Pick<TurnRequest, "signal" | "onText">): TurnRequest {
  const { message, isWrapped, tools, model, thinking, timeoutSeconds } = run.action;
  return {
    ...own,
    runId: run.id,
    sessionKey: run.sessionKey,
    prompt: renderPassage(message, { isWrapped, source: sourceOf(run) }),
    tools,
    ...(timeoutSeconds === undefined ? {} : { timeoutMs: timeoutSeconds * 1000 }),
    ...(model === undefined ? {} : { model }),
    ...(thinking === undefined ? {} : { thinking }),
  };
}
