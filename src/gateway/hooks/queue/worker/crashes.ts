/**
 * Recovers turns that a crash interrupted, or that no worker holds. A turn can crash its process, by its memory or by a
 * bug, and must not do so for ever; a turn that only ran at the same time must not be blamed. The rules:
 *
 * - Each crash makes the interrupted turns wait, longer each time, and from the second crash on at least four times as
 *   long as they had run, up to an hour.
 * - After two crashes a turn is started alone (see `claimTurns`). All such turns wait after a crash of one of them, so
 *   that most of the time none of them runs.
 * - A crash while none of them ran had another cause: it clears them all.
 * - A turn that was interrupted alone as often as a run may be attempted, and was never cleared in between, is the
 *   cause: it is dead. Unrelated crashes would have had to miss every pause.
 */
import type { Peers } from "../../../database/peers.ts";
import { execute, queryAll, type Transaction } from "../../../database/store.ts";
import { isSuspect, leasedRuns } from "../deliveries/claims.ts";
import { moveRun, type Run } from "../deliveries/runs.ts";
import { giveUp, type Context } from "./conclude.ts";

/** Duration of a lease. */
export const LEASE_MS = 30_000;

const FIRST_PAUSE_MS = 1000;
const PAUSE_FACTOR = 4;
const GROWING_PAUSE_MAX_MS = 300_000;
const PAUSE_MAX_MS = 3_600_000;

export interface Recovery {
  readonly peers: Pick<Peers, "me" | "gone">;
  /**
   * True if this worker survived the crashes of other runs: a crash that repeats at every start is not caused by them.
   */
  readonly hasSurvived: boolean;
  /** The turns of this worker. */
  readonly turns: {
    /** True if this worker keeps the run. */
    holds(run: Run): boolean;
    /** True if a run's turn was started. */
    hasBegun(runId: string): boolean;
  };
  /** Maximum number of turns started for one run. */
  readonly maxAttempts: number;
  readonly context: Context;
}

/** Registers a worker until it shuts down cleanly. */
export const registerWorker = (owner: string, now: number): Transaction<number> =>
  execute("INSERT INTO workers (owner, started_at) VALUES ($1, $2) ON CONFLICT DO NOTHING", owner, now);

/** Removes a worker that shut down cleanly. */
export const dismissWorker = (owner: string): Transaction<number> =>
  execute("DELETE FROM workers WHERE owner = $1", owner);

/** True if `recover` has work. */
export function* needsRecovery(parts: Recovery): Transaction<boolean> {
  return (yield* crashedWorkers(parts)).length > 0 || (yield* strandedRuns(parts)).length > 0;
}

/** Recovers runs without a worker. Returns the runs in their new state. */
export function* recover(parts: Recovery): Transaction<Run[]> {
  const recovered: Run[] = [];
  for (const owner of yield* crashedWorkers(parts)) {
    const runs = (yield* leasedRuns()).filter((run) => run.leaseOwner === owner);
    yield* dismissWorker(owner);
    recovered.push(...(yield* afterCrash(runs, parts)));
  }
  for (const run of yield* strandedRuns(parts)) recovered.push(yield* giveBack(run, parts));
  return recovered;
}

/** Workers that ended without a clean shutdown, the oldest first. */
function* crashedWorkers({ peers }: Recovery): Transaction<string[]> {
  const rows = yield* queryAll<{ owner: string }>("SELECT owner FROM workers ORDER BY started_at");
  return yield* peers.gone(rows.map(({ owner }) => owner));
}

function* afterCrash(cutOff: readonly Run[], parts: Recovery): Transaction<Run[]> {
  const { now } = parts.context;
  if (!cutOff.some(isSuspect)) yield* clearSuspects();
  const after: Run[] = [];
  for (const run of cutOff) after.push(yield* chargeCrash(run, { isAlone: cutOff.length === 1, parts }));
  yield* holdSuspects(Math.max(now, ...after.map(({ nextAt }) => nextAt)));
  return after;
}

/** Clears waiting suspects; a run that a worker holds may still crash. */
const clearSuspects = (): Transaction<number> =>
  execute(
    "UPDATE runs SET suspected = 0, suspected_alone = 0 WHERE finished_at IS NULL AND suspected > 0 AND state = 'queued'",
  );

function* holdSuspects(until: number): Transaction<void> {
  const waiting = yield* queryAll<{ seq: number; suspected: number }>(
    "SELECT seq, suspected FROM runs WHERE finished_at IS NULL AND suspected > 0 AND state = 'queued' AND next_at < $1",
    until,
  );
  for (const { seq } of waiting.filter(isSuspect)) {
    yield* execute("UPDATE runs SET next_at = $1 WHERE seq = $2", until, seq);
  }
}

function* chargeCrash(run: Run, { isAlone, parts }: { isAlone: boolean; parts: Recovery }): Transaction<Run> {
  const { maxAttempts, context } = parts;
  if (run.cancelAt !== null) return yield* giveUp(run, { outcome: "cancelled", reason: "cancelled" }, context);
  const suspected = run.suspected + 1;
  const suspectedAlone = run.suspectedAlone + Number(isAlone);
  yield* execute(
    "UPDATE runs SET crashes = crashes + 1, suspected = $1, suspected_alone = $2 WHERE id = $3",
    suspected,
    suspectedAlone,
    run.id,
  );
  if (suspectedAlone >= maxAttempts) {
    const reason = `the server ended ${suspectedAlone} times while only this turn ran, and at no other time: it counts as the cause`;
    return yield* giveUp(run, { outcome: "dead", reason }, context);
  }
  const nextAt = context.now + (suspected === 1 && parts.hasSurvived ? 0 : pauseMs(run, suspected));
  return yield* moveRun(run, "release", context.now, { nextAt, reason: "the server ended while it ran" });
}

/** Computes the run time from its last lease, which a living process renews. */
function pauseMs({ startedAt, leaseUntil }: Run, crashes: number): number {
  const ranMs = Math.max(0, (leaseUntil ?? 0) - LEASE_MS - (startedAt ?? 0));
  const growing = Math.min(GROWING_PAUSE_MAX_MS, FIRST_PAUSE_MS * PAUSE_FACTOR ** Math.min(crashes - 1, 10));
  return crashes === 1 ? growing : Math.max(growing, Math.min(PAUSE_MAX_MS, PAUSE_FACTOR * ranMs));
}

/** Leased runs whose turn does not run although no process crashed: storing their claim or their end failed. */
function* strandedRuns({ peers, turns }: Recovery): Transaction<Run[]> {
  const leased = yield* leasedRuns();
  const others = leased.flatMap(({ leaseOwner }) => (leaseOwner === peers.me ? [] : [leaseOwner ?? ""]));
  const gone = others.length > 0 ? yield* peers.gone(others) : [];
  return leased.filter((run) =>
    run.leaseOwner === peers.me ? !turns.holds(run) : gone.includes(run.leaseOwner ?? ""),
  );
}

function* giveBack(run: Run, { peers, turns, maxAttempts, context }: Recovery): Transaction<Run> {
  if (run.cancelAt !== null) return yield* giveUp(run, { outcome: "cancelled", reason: "cancelled" }, context);
  if (run.leaseOwner === peers.me && !turns.hasBegun(run.id)) {
    return yield* moveRun(run, "release", context.now, { attempts: run.attempts - 1 });
  }
  const reason = "the outcome of its turn could not be stored";
  if (run.attempts - run.crashes < maxAttempts) return yield* moveRun(run, "release", context.now, { reason });
  return yield* giveUp(run, { outcome: "dead", reason }, context);
}
