/**
 * Runs turns: starts due ones within the limits, renews their leases, stores their outcomes, and stops them on request.
 * It stores an outcome only while it holds the lease.
 */
import { renderTainted } from "../../../agent/boundary/index.ts";
import { failedTurn, type TurnRequest, type TurnResult } from "../../../agent/turn.ts";
import { AppError, type Logger, messageOf } from "../../../../base/index.ts";
import type { Peers } from "../../../database/peers.ts";
import { queryOne, type Transaction, type Store } from "../../../database/store.ts";
import { FailureLog } from "../../../database/failure-log.ts";
import { claimTurns, hasDueTurn, renewLeases } from "../deliveries/claims.ts";
import { asTurn, findRun, moveRun, type Run, type TurnRun } from "../deliveries/runs.ts";
import type { Outcome } from "../deliveries/state.ts";
import { MAX_AGE_MS, retryDelayMs } from "./backoff.ts";
import { concludeTurn, sourceOf } from "./conclude.ts";
import { LEASE_MS } from "./crashes.ts";
import { ModelOutage } from "./model-outage.ts";
import type { WorkerPorts } from "./ports.ts";
import { waitForApproval } from "./wait-for-approval.ts";

const RENEW_MS = 10_000;
/** Delay after a failed write. */
const STUCK_MS = 1000;

export interface TurnLimits {
  readonly maxConcurrent: number;
  /** Maximum number of concurrent turns of a mapping; undefined: unlimited. */
  readonly maxConcurrentOf: (mappingId: string) => number | undefined;
  /** Maximum number of turns started for one run. */
  readonly maxAttempts: number;
}

export interface TurnRunnerDeps {
  readonly store: Store;
  readonly ports: WorkerPorts;
  readonly settings: () => TurnLimits;
  readonly log: Logger;
  readonly now: () => number;
  readonly random: () => number;
  readonly peers: Pick<Peers, "me" | "gone" | "checkTime">;
  readonly onText: (runId: string, text: string) => void;
  /** Called when a turn began. */
  readonly onBegun: (runId: string) => void;
  /** Called when a turn has ended, with the run if it was stored. */
  readonly onEnded: (runId: string, run: Run | undefined) => void;
}

/** The reason to stop a turn. `lost`: another worker has its run, or may take it. */
type StopReason = "cancel" | "drain" | "lost";

interface Running {
  /** The owner of its lease. */
  readonly owner: string | null;
  readonly controller: AbortController;
  why: StopReason | undefined;
  done: Promise<void>;
}

export class TurnRunner {
  readonly #deps: TurnRunnerDeps;
  readonly #running = new Map<string, Running>();
  /** Turns that ended and could not be stored: their runs start again when their leases end. */
  readonly #unstored = new Set<string>();
  readonly #outage: ModelOutage;
  readonly #renewal: Timer;
  #isDraining = false;

  /** Runs a timer until `stop`. */
  constructor(deps: TurnRunnerDeps) {
    this.#deps = deps;
    this.#outage = new ModelOutage(deps.log);
    this.#renewal = setInterval(() => void this.#renew(), RENEW_MS);
  }

  /** True if a run's turn runs here, or ended here without being stored. */
  holds({ id, leaseOwner, leaseUntil }: Run): boolean {
    const isRunning = this.#running.get(id)?.owner === leaseOwner;
    return isRunning || (this.#unstored.has(id) && (leaseUntil ?? 0) > this.#deps.now());
  }

  /** True if a run's turn was started here and has not been stored. */
  hasBegun(runId: string): boolean {
    return this.#running.has(runId) || this.#unstored.has(runId);
  }

  /**
   * Starts due turns; resolves once they have started.
   * @param mayBegin called when some are known to be due
   */
  async begin(mayBegin: () => boolean): Promise<void> {
    const { store, now, settings } = this.#deps;
    const limits = settings();
    if (this.#running.size >= limits.maxConcurrent || !(await store.read(() => hasDueTurn(now())))) return;
    if (!mayBegin()) return;
    const claimed = await store.write(() => this.#claim(limits));
    for (const run of claimed) this.#begin(run);
  }

  /** Claims nothing for a node that the others have removed: they would take such runs at once. */
  *#claim({ maxConcurrent, maxConcurrentOf: limitOf }: TurnLimits): Transaction<TurnRun[]> {
    const { now, peers } = this.#deps;
    const owner = peers.me;
    if ((yield* peers.gone([owner])).length > 0) return [];
    const free = maxConcurrent - this.#running.size;
    return yield* claimTurns({ owner, now: now(), leaseUntil: now() + LEASE_MS, free, limitOf });
  }

  /** Stops a run's model; does nothing if the run has no turn here. */
  cancel(runId: string): void {
    this.#tell(runId, "cancel");
  }

  /** Stops all turns, because other workers may take their runs. */
  loseAll(): void {
    for (const runId of this.#running.keys()) this.#tell(runId, "lost");
  }

  /**
   * Lets turns finish for a while, then stops them and returns their runs to the queue. The caller must start no more.
   */
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
    const { ports, peers, onText, now } = this.#deps;
    const request = requestOf(run, {
      signal: running.controller.signal,
      onText: (text) => onText(run.id, text),
      checkOwner: () => checkOwner(run.id, running.owner),
      checkTime: peers.checkTime,
    });
    const result = await Promise.try(ports.runTurn, request).catch((error: unknown) => failedTurn(error));
    this.#outage.note(result, now());
    const after = await this.#stored(run, running, result);
    // otherwise it began again under another lease
    if (this.#running.get(run.id) === running) this.#running.delete(run.id);
    if (result.status === "waiting") ports.sendReplies(); // its chat may be asked for an approval
    this.#deps.onEnded(run.id, after);
  }

  /**
   * Stores a turn's outcome, retrying while the disk fails; undefined if it could not, or another worker has the run.
   */
  async #stored(run: Run, running: Running, result: TurnResult): Promise<Run | undefined> {
    const { store, log } = this.#deps;
    const failures = new FailureLog(`hooks: storing the turn of run ${run.id} failed`);
    for (;;) {
      try {
        const after = await store.write(() => this.#storeOwn(run.id, running, result));
        failures.succeeded(log);
        return after;
      } catch (error) {
        failures.failed(error, log);
        const isDisk = error instanceof AppError && error.code === "storage";
        if (!isDisk || this.#isDraining) {
          this.#unstored.add(run.id);
          return undefined;
        }
        await Bun.sleep(STUCK_MS);
      }
    }
  }

  *#storeOwn(runId: string, running: Running, result: TurnResult): Transaction<Run | undefined> {
    const current = yield* findRun(runId);
    if (current?.state !== "running" || current.leaseOwner !== running.owner) return undefined;
    return yield* this.#store(asTurn(current), running, result);
  }

  *#store(run: TurnRun, { why }: Running, result: TurnResult): Transaction<Run> {
    const { ports, random, settings } = this.#deps;
    const now = this.#deps.now();
    if (result.status === "ok") {
      const isEphemeral = run.action.sessionKey === undefined;
      const { id: runId, sessionKey } = run;
      yield* ports.storeTurn({ runId, sessionKey, record: result.record, isEphemeral, now });
      return yield* concludeTurn(run, { outcome: "ok", result }, { ports, now });
    }
    const isUnwanted = why === "cancel" || run.cancelAt !== null; // a cancellation may not have been delivered yet
    if (!isUnwanted && (why === "drain" || why === "lost")) {
      return yield* moveRun(run, "release", now, { attempts: run.attempts - 1 });
    }
    const ending = (outcome: Outcome, reason: string): Transaction<Run> =>
      concludeTurn(run, { outcome, reason }, { ports, now });
    if (result.status === "waiting" && !isUnwanted) {
      return yield* waitForApproval(run, result.waitsUntil ?? now, { ports, now });
    }
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
      log.warn("hooks: renewing leases failed", { error: messageOf(error) });
    }
  }
}

/** Throws `cancelled` if another process has the run by now. */
function* checkOwner(runId: string, owner: string | null): Transaction<void> {
  const own = "SELECT 1 FROM runs WHERE id = $1 AND state = 'running' AND lease_owner = $2";
  if (!(yield* queryOne(own, runId, owner))) throw new AppError("cancelled", "another process has the run");
}

/** The agent's request for a run: its prompt is behind the safety boundary, and the agent keeps its time limit. */
function requestOf(
  run: TurnRun,
  own: Pick<TurnRequest, "signal" | "onText" | "checkOwner" | "checkTime">,
): TurnRequest {
  const { message, isWrapped, tools, model, thinking, timeoutSeconds } = run.action;
  return {
    ...own,
    runId: run.id,
    sessionKey: run.sessionKey,
    prompt: renderTainted(message, { isWrapped, source: sourceOf(run) }),
    tools,
    ...(timeoutSeconds === undefined ? {} : { timeoutMs: timeoutSeconds * 1000 }),
    ...(model === undefined ? {} : { model }),
    ...(thinking === undefined ? {} : { thinking }),
  };
}
