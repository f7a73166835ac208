/**
 * Recovers turns that a crash cut off, or that no worker holds. A turn can take its process down, by its memory or by a
 * bug, and must not do so for ever; a turn that only ran meanwhile must not pay for it. What tells them apart:
 *
 * - Each crash makes the turns that it cut off wait, longer each time, and from the second crash on at least four times
 *   as long as they had run, up to an hour.
 * - After two crashes a turn is begun alone (see `claimTurns`). All such turns wait after a crash of one of them, so
 *   that most of the time none of them runs.
 * - A crash while none of them ran was not their doing: it clears them all.
 * - A turn that alone was cut off as often as a run may be attempted, and was never cleared between, is the cause: it
 *   is dead. Crashes that come from elsewhere would have had to miss every pause.
 */
import type { Peers } from "../../../database/peers.ts";
import { execute, queryAll, type Script } from "../../../database/store.ts";
import { isSuspect, leasedRuns } from "../deliveries/claims.ts";
import { moveRun, type Run } from "../deliveries/runs.ts";
import { giveUp, type Context } from "./conclude.ts";

/** How long a lease lasts. */
export const LEASE_MS = 30_000;

const FIRST_PAUSE_MS = 1000;
const PAUSE_FACTOR = 4;
const GROWING_PAUSE_MAX_MS = 300_000;
const PAUSE_MAX_MS = 3_600_000;

export interface Recovery {
  readonly peers: Pick<Peers, "me" | "gone">;
  /** Whether this worker was there while the others crashed: a crash that comes again at every start is not theirs. */
  readonly hasSurvived: boolean;
  /** The turns of this worker. */
  readonly turns: {
    /** Whether a run is to be left to it. */
    holds(run: Run): boolean;
    /** Whether a run's turn was begun. */
    hasBegun(runId: string): boolean;
  };
  /** Turns that are begun for one run at most. */
  readonly maxAttempts: number;
  readonly context: Context;
}

/** Notes that a worker is there, until it stops in order. */
export const registerWorker = (owner: string, now: number): Script<number> =>
  execute("INSERT INTO workers (owner, started_at) VALUES ($1, $2) ON CONFLICT DO NOTHING", owner, now);

/** Notes that a worker stopped in order. */
export const dismissWorker = (owner: string): Script<number> => execute("DELETE FROM workers WHERE owner = $1", owner);

/** Whether there is anything for `recover`. */
export function* needsRecovery(parts: Recovery): Script<boolean> {
  return (yield* crashedWorkers(parts)).length > 0 || (yield* strandedRuns(parts)).length > 0;
}

/** Takes up what has no worker any more. Returns the runs as they are now. */
export function* recover(parts: Recovery): Script<Run[]> {
  const recovered: Run[] = [];
  for (const owner of yield* crashedWorkers(parts)) {
    const runs = (yield* leasedRuns()).filter((run) => run.leaseOwner === owner);
    yield* dismissWorker(owner);
    recovered.push(...(yield* afterCrash(runs, parts)));
  }
  for (const run of yield* strandedRuns(parts)) recovered.push(yield* giveBack(run, parts));
  return recovered;
}

/** Workers that ended and did not stop in order, the oldest first. */
function* crashedWorkers({ peers }: Recovery): Script<string[]> {
  const rows = yield* queryAll<{ owner: string }>("SELECT owner FROM workers ORDER BY started_at");
  return yield* peers.gone(rows.map(({ owner }) => owner));
}

function* afterCrash(cutOff: readonly Run[], parts: Recovery): Script<Run[]> {
  const { now } = parts.context;
  if (!cutOff.some(isSuspect)) yield* clearSuspects();
  const after: Run[] = [];
  for (const run of cutOff) after.push(yield* chargeCrash(run, { isAlone: cutOff.length === 1, parts }));
  yield* holdSuspects(Math.max(now, ...after.map(({ nextAt }) => nextAt)));
  return after;
}

/** Of those that a worker has, nothing is known yet. */
const clearSuspects = (): Script<number> =>
  execute(
    "UPDATE runs SET suspected = 0, suspected_alone = 0 WHERE finished_at IS NULL AND suspected > 0 AND state = 'queued'",
  );

function* holdSuspects(until: number): Script<void> {
  const waiting = yield* queryAll<{ seq: number; suspected: number }>(
    "SELECT seq, suspected FROM runs WHERE finished_at IS NULL AND suspected > 0 AND state = 'queued' AND next_at < $1",
    until,
  );
  for (const { seq } of waiting.filter(isSuspect)) {
    yield* execute("UPDATE runs SET next_at = $1 WHERE seq = $2", until, seq);
  }
}

function* chargeCrash(run: Run, { isAlone, parts }: { isAlone: boolean; parts: Recovery }): Script<Run> {
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
    const reason = `the server ended ${suspectedAlone} times while it ran alone, and at no other time: it is taken for the cause`;
    return yield* giveUp(run, { outcome: "dead", reason }, context);
  }
  const nextAt = context.now + (suspected === 1 && parts.hasSurvived ? 0 : pauseMs(run, suspected));
  return yield* moveRun(run, "release", context.now, { nextAt, reason: "the server ended while it ran" });
}

/** Every lease was renewed while the process was there. */
function pauseMs({ startedAt, leaseUntil }: Run, crashes: number): number {
  const ranMs = Math.max(0, (leaseUntil ?? 0) - LEASE_MS - (startedAt ?? 0));
  const growing = Math.min(GROWING_PAUSE_MAX_MS, FIRST_PAUSE_MS * PAUSE_FACTOR ** Math.min(crashes - 1, 10));
  return crashes === 1 ? growing : Math.max(growing, Math.min(PAUSE_MAX_MS, PAUSE_FACTOR * ranMs));
}

/** Leased runs whose turn runs nowhere though nothing crashed: their claim, or their end, could not be stored. */
function* strandedRuns({ peers, turns }: Recovery): Script<Run[]> {
  const leased = yield* leasedRuns();
  const others = leased.flatMap(({ leaseOwner }) => (leaseOwner === peers.me ? [] : [leaseOwner ?? ""]));
  const gone = others.length > 0 ? yield* peers.gone(others) : [];
  return leased.filter((run) =>
    run.leaseOwner === peers.me ? !turns.holds(run) : gone.includes(run.leaseOwner ?? ""),
  );
}

function* giveBack(run: Run, { peers, turns, maxAttempts, context }: Recovery): Script<Run> {
  if (run.cancelAt !== null) return yield* giveUp(run, { outcome: "cancelled", reason: "cancelled" }, context);
  if (run.leaseOwner === peers.me && !turns.hasBegun(run.id)) {
    return yield* moveRun(run, "release", context.now, { attempts: run.attempts - 1 });
  }
  const reason = "what became of its turn could not be stored";
  if (run.attempts - run.crashes < maxAttempts) return yield* moveRun(run, "release", context.now, { reason });
  return yield* giveUp(run, { outcome: "dead", reason }, context);
}
