/**
 * The turns that run now: begins those that are due within the limits, keeps their leases, stores how they end, and
 * stops them when told. What it stores, it stores only while the lease is its own.
 */
import type { Database, Writer } from "../../base/database.ts";
import type { TurnResult } from "../../agent/turn.ts";
import { AppError, messageOf } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import type { AgentAction } from "../action.ts";
import { mappingOfLane } from "../deliveries/lane.ts";
import { claimTurns, findRun, hasDueTurn, moveRun, renewLeases, type Run } from "../deliveries/runs.ts";
import type { Outcome } from "../deliveries/state.ts";
import { MAX_AGE_MS, retryDelayMs } from "./backoff.ts";
import { concludeTurn } from "./conclude.ts";
import type { WorkerPorts } from "./ports.ts";
import { takeTurn } from "./turn.ts";

const LEASE_MS = 30_000;
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
  /** How long turns of a session may take where their action does not say. */
  readonly timeoutMsOf: (sessionKey: string) => number;
}

export interface TurnRunnerDeps {
  readonly db: Database;
  readonly writer: Writer;
  readonly ports: WorkerPorts;
  readonly settings: () => TurnLimits;
  readonly log: Logger;
  readonly now: () => number;
  readonly random: () => number;
  /** Who holds the leases. */
  readonly owner: string;
  readonly onText: (runId: string, text: string) => void;
  /** Called when a turn began. */
  readonly onBegun: (runId: string) => void;
  /** Called when a turn is over; with the run as it was stored, where it was. */
  readonly onEnded: (runId: string, run: Run | undefined) => void;
}

/** Why a turn was told to stop. */
type StopReason = "cancel" | "drain";

interface Running {
  readonly lane: string;
  readonly controller: AbortController;
  why: StopReason | undefined;
  done: Promise<void>;
}

export class TurnRunner {
  readonly #deps: TurnRunnerDeps;
  readonly #running = new Map<string, Running>();
  readonly #renewal: Timer;

  /** Keeps a timer until `stop`. */
  constructor(deps: TurnRunnerDeps) {
    this.#deps = deps;
    this.#renewal = setInterval(() => void this.#renew(), RENEW_MS);
  }

  has(runId: string): boolean {
    return this.#running.has(runId);
  }

  /** Begins turns that are due; resolves once they have begun. */
  async begin(): Promise<void> {
    const { db, writer, now, settings, owner } = this.#deps;
    const limits = settings();
    if (this.#running.size >= limits.maxConcurrent || !hasDueTurn(db, now())) return;
    const claimed = await writer.write((at) =>
      claimTurns(at, {
        owner,
        now: now(),
        leaseUntil: now() + LEASE_MS,
        free: limits.maxConcurrent - this.#running.size,
        freeOf: (lane) => this.#freeOf(lane, limits),
      }),
    );
    for (const run of claimed) this.#begin(run);
  }

  /** Tells a model to stop; nothing where the run has no turn here. */
  cancel(runId: string): void {
    this.#tell(runId, "cancel");
  }

  /** Lets turns finish for a while, then stops them and gives their runs back. Begins none: that is the caller's. */
  async stop(graceMs: number): Promise<void> {
    const over = (): Promise<unknown> => Promise.all([...this.#running.values()].map(({ done }) => done));
    const { promise: graceOver, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, graceMs);
    await Promise.race([over(), graceOver]);
    clearTimeout(timer);
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

  #freeOf(lane: string, { maxConcurrentOf }: TurnLimits): number {
    const mappingId = mappingOfLane(lane);
    const limit = mappingId === undefined ? undefined : maxConcurrentOf(mappingId);
    if (limit === undefined) return Infinity;
    return limit - [...this.#running.values()].filter((running) => running.lane === lane).length;
  }

  #begin(run: Run): void {
    const action = run.action as AgentAction; // claimTurns takes runs with a turn, which agents have
    const running: Running = {
      lane: run.lane,
      controller: new AbortController(),
      why: undefined,
      done: Promise.resolve(),
    };
    this.#running.set(run.id, running);
    this.#deps.onBegun(run.id);
    running.done = this.#turn(run, action, running);
  }

  /** Never rejects. */
  async #turn(run: Run, action: AgentAction, running: Running): Promise<void> {
    const result = await takeTurn(run, action, {
      ports: this.#deps.ports,
      timeoutMs: this.#deps.settings().timeoutMsOf(run.sessionKey),
      signal: running.controller.signal,
      onText: (text) => this.#deps.onText(run.id, text),
    });
    const after = await this.#stored(run, running, result);
    this.#running.delete(run.id);
    this.#deps.onEnded(run.id, after);
  }

  /** Stores how a turn ended, however long the disk refuses; undefined where it could not, or the run is another's. */
  async #stored(run: Run, running: Running, result: TurnResult): Promise<Run | undefined> {
    const { writer, owner, log } = this.#deps;
    for (;;) {
      try {
        return await writer.write((db) => {
          const current = findRun(db, run.id);
          if (current?.state !== "running" || current.leaseOwner !== owner) return undefined;
          return this.#store(db, current, running, result);
        });
      } catch (error) {
        log.error("hooks: the end of a turn cannot be stored", { runId: run.id, error: messageOf(error) });
        const isDisk = error instanceof AppError && error.code === "storage";
        if (!isDisk || running.why === "drain") return undefined; // its lease runs out, and it is run again
        await Bun.sleep(STUCK_MS);
      }
    }
  }

  #store(db: Database, run: Run, { why }: Running, result: TurnResult): Run {
    const { ports, random, settings } = this.#deps;
    const now = this.#deps.now();
    if (result.status === "ok") {
      const isEphemeral = (run.action as AgentAction).sessionKey === undefined; // only agents have turns
      const { id: runId, sessionKey } = run;
      ports.storeTurn(db, { runId, sessionKey, record: result.record, isEphemeral, now });
      return concludeTurn(db, run, { outcome: "ok", result }, { ports, now });
    }
    if (why === "drain") return moveRun(db, run, "release", now, { attempts: run.attempts - 1 });
    const ending = (outcome: Outcome, reason: string): Run =>
      concludeTurn(db, run, { outcome, reason }, { ports, now });
    const error = result.error ?? "the turn failed";
    if (why === "cancel" || result.status === "cancelled") return ending("cancelled", "cancelled while it ran");
    if (result.status === "timeout") return ending("timeout", error);
    if (!result.isTemporary) return ending("error", error);
    if (run.attempts >= settings().maxAttempts || now - run.createdAt > MAX_AGE_MS) return ending("dead", error);
    return moveRun(db, run, "retry", now, { nextAt: now + retryDelayMs(run.attempts, random), reason: error });
  }

  async #renew(): Promise<void> {
    if (this.#running.size === 0) return;
    const { writer, now, log } = this.#deps;
    try {
      const until = now() + LEASE_MS;
      const unwanted = await writer.write((db) => renewLeases(db, [...this.#running.keys()], until));
      for (const runId of unwanted) this.cancel(runId);
    } catch (error) {
      log.warn("hooks: leases cannot be renewed", { error: messageOf(error) });
    }
  }
}
