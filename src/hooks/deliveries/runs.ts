/**
 * Rows of runs: made, taken by a worker for the length of a lease, given back, and moved from state to state. All
 * functions belong inside a transaction.
 */
import { assert } from "../../base/errors.ts";
import type { Database } from "../../base/database.ts";
import type { AgentAction, HookAction } from "../action.ts";
import { isFinal, nextState, type Outcome, type ReplyState, type RunEvent, type RunState } from "./state.ts";

/** What comes next in a run that is open: `turn` the model, `event` the main session's event. */
export type Step = "turn" | "event";

export interface Run {
  readonly seq: number;
  readonly id: string;
  readonly deliveryId: string;
  readonly lane: string;
  readonly sessionKey: string;
  readonly action: HookAction;
  readonly state: RunState;
  readonly step: Step;
  /** Turns that were begun. */
  readonly attempts: number;
  readonly nextAt: number;
  readonly leaseOwner: string | null;
  readonly leaseUntil: number | null;
  readonly cancelAt: number | null;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  readonly outcome: Outcome | null;
  readonly reason: string | null;
  readonly answer: string | null;
  readonly reply: ReplyState;
}

const COLUMNS = `seq, id, delivery_id AS deliveryId, lane, session_key AS sessionKey, action, state, step, attempts,
  next_at AS nextAt, lease_owner AS leaseOwner, lease_until AS leaseUntil, cancel_at AS cancelAt, created_at AS createdAt,
  started_at AS startedAt, finished_at AS finishedAt, outcome, reason, answer, reply`;

type Row = Omit<Run, "action"> & { readonly action: string };
const fromRow = (row: Row): Run => ({ ...row, action: JSON.parse(row.action) as HookAction }); // insertRuns wrote it

/** The session of a run. `requested` undefined: one of its own. */
export type SessionKeyOf = (question: {
  readonly requested: string | undefined;
  readonly runId: string;
  readonly agentId?: string;
}) => string;

export interface NewRuns {
  readonly deliveryId: string;
  readonly lane: string;
  readonly runs: readonly { readonly id: string; readonly action: HookAction; readonly replayOf?: string }[];
  readonly sessionKeyOf: SessionKeyOf;
  readonly now: number;
}

export function insertRuns(db: Database, { deliveryId, lane, runs, sessionKeyOf, now }: NewRuns): void {
  const insert = db.query(
    `INSERT INTO runs (id, delivery_id, item, lane, session_key, action, state, step, next_at, created_at, replay_of)
     VALUES (?, ?, ?, ?, ?, ?, 'queued', ?, ?, ?, ?)`,
  );
  for (const [item, { id, action, replayOf }] of runs.entries()) {
    const isAgent = action.kind === "agent";
    const sessionKey = isAgent ? sessionKeyOf(keyQuestion(action, id)) : "main";
    const step: Step = isAgent ? "turn" : "event";
    insert.run(id, deliveryId, item, lane, sessionKey, JSON.stringify(action), step, now, now, replayOf ?? null);
  }
}

const keyQuestion = ({ sessionKey, agentId }: AgentAction, runId: string): Parameters<SessionKeyOf>[0] => ({
  requested: sessionKey,
  runId,
  ...(agentId === undefined ? {} : { agentId }),
});

export function findRun(db: Database, id: string): Run | undefined {
  const row = db.query<Row, [string]>(`SELECT ${COLUMNS} FROM runs WHERE id = ?`).get(id);
  return row ? fromRow(row) : undefined;
}

/** Where a run's reply went, or was to go: the id of a channel, or `last` where none was found. */
export function replyChannelOf(db: Database, { id, action }: Run): string {
  const row = db
    .query<{ channel: string | null }, [string]>("SELECT reply_target ->> 'channel' AS channel FROM runs WHERE id = ?")
    .get(id);
  return row?.channel ?? (action.kind === "agent" ? action.channel : "last");
}

/** What a transition changes beside the state. */
export interface RunChanges {
  readonly step?: Step;
  readonly nextAt?: number;
  readonly attempts?: number;
  readonly outcome?: Outcome;
  readonly reason?: string | null;
  readonly lease?: { readonly owner: string; readonly until: number };
}

/**
 * Moves a run. A lease ends with every move but `claim`. Asserts that the event can happen: callers read the run in
 * the same transaction.
 */
export function moveRun(db: Database, run: Run, event: RunEvent, now: number, changes: RunChanges = {}): Run {
  const state = nextState(run.state, event);
  assert(state !== undefined, `run ${run.id} is ${run.state}: cannot ${event}`);
  const row = db
    .query<Row, Record<string, string | number | null>>(
      `UPDATE runs SET state = $state, step = $step, next_at = $nextAt, attempts = $attempts, outcome = $outcome,
         reason = $reason, lease_owner = $owner, lease_until = $until,
         started_at = CASE WHEN $state = 'running' THEN $now ELSE started_at END, finished_at = $finishedAt
       WHERE id = $id RETURNING ${COLUMNS}`,
    )
    .get({
      id: run.id,
      state,
      now,
      step: changes.step ?? run.step,
      nextAt: changes.nextAt ?? run.nextAt,
      attempts: changes.attempts ?? run.attempts,
      outcome: changes.outcome ?? run.outcome,
      reason: changes.reason === undefined ? run.reason : changes.reason,
      owner: changes.lease?.owner ?? null,
      until: changes.lease?.until ?? null,
      finishedAt: isFinal(state) ? now : null,
    });
  assert(row, `run ${run.id} is gone`);
  return fromRow(row);
}

export interface ClaimOptions {
  readonly owner: string;
  readonly now: number;
  readonly leaseUntil: number;
  /** Turns that may begin now. */
  readonly free: number;
  /** Turns of a lane that may begin now. */
  readonly freeOf: (lane: string) => number;
}

/**
 * Takes runs whose turn is due: of each session only the oldest, lanes in turn (those with the fewest running first),
 * the oldest of a lane first.
 */
export function claimTurns(db: Database, { owner, now, leaseUntil, free, freeOf }: ClaimOptions): Run[] {
  if (free <= 0) return [];
  const lanes = Map.groupBy(dueTurns(db, { now, perLane: free }), (run) => run.lane);
  const queues = [...lanes]
    .map(([lane, runs]) => ({ runs: runs.slice(0, Math.max(0, freeOf(lane))), running: runningIn(db, lane) }))
    .toSorted((a, b) => a.running - b.running);
  const chosen: Row[] = [];
  for (let round = 0; chosen.length < free && queues.some(({ runs }) => runs.length > round); round++) {
    chosen.push(...queues.flatMap(({ runs }) => runs.slice(round, round + 1)));
  }
  const lease = { owner, until: leaseUntil };
  return chosen
    .slice(0, free)
    .map((row) => moveRun(db, fromRow(row), "claim", now, { attempts: row.attempts + 1, lease }));
}

/** A session's runs come one after the other: who waits for its time, or runs, holds up the later ones. */
function dueTurns(db: Database, { now, perLane }: { now: number; perLane: number }): Row[] {
  return db
    .query<Row, [number, number]>(
      `SELECT * FROM (
         SELECT ${COLUMNS}, row_number() OVER (PARTITION BY lane ORDER BY seq) AS place FROM runs AS run
         WHERE finished_at IS NULL AND step = 'turn' AND state = 'queued' AND next_at <= ? AND NOT EXISTS (
           SELECT 1 FROM runs AS earlier WHERE earlier.finished_at IS NULL AND earlier.step = 'turn'
             AND earlier.session_key = run.session_key AND earlier.seq < run.seq)
       ) WHERE place <= ? ORDER BY seq`,
    )
    .all(now, perLane);
}

const runningIn = (db: Database, lane: string): number =>
  db
    .query<{ n: number }, [string]>(
      "SELECT count(*) AS n FROM runs WHERE finished_at IS NULL AND step = 'turn' AND state = 'running' AND lane = ?",
    )
    .get(lane)?.n ?? 0;

/** Runs whose event has to be posted, oldest first. */
export const dueEvents = (db: Database, limit: number): Run[] =>
  db
    .query<Row, [number]>(
      `SELECT ${COLUMNS} FROM runs WHERE finished_at IS NULL AND step = 'event' AND state = 'queued'
       ORDER BY seq LIMIT ?`,
    )
    .all(limit)
    .map(fromRow);

/** When the next turn that waits for its time is due. */
export const nextTurnAt = (db: Database, now: number): number | undefined =>
  db
    .query<{ at: number | null }, [number]>(
      `SELECT min(next_at) AS at FROM runs
       WHERE finished_at IS NULL AND step = 'turn' AND state = 'queued' AND next_at > ?`,
    )
    .get(now)?.at ?? undefined;

/** Makes leases last longer, and tells which of the runs somebody wants ended. */
export function renewLeases(db: Database, runIds: readonly string[], until: number): readonly string[] {
  return db
    .query<{ id: string; cancelAt: number | null }, [number, string]>(
      `UPDATE runs SET lease_until = ? WHERE state = 'running' AND id IN (SELECT value FROM json_each(?))
       RETURNING id, cancel_at AS cancelAt`,
    )
    .all(until, JSON.stringify(runIds))
    .filter((row) => row.cancelAt !== null)
    .map((row) => row.id);
}

/**
 * Runs whose owner is no more: their lease is over, or `isGone` knows better. Asked in every round, so by the index of
 * leases: left alone, the planner reads all runs there ever were to have them in order.
 */
export function orphanedRuns(db: Database, now: number, isGone: (owner: string) => boolean): Run[] {
  return db
    .query<Row, []>(`SELECT ${COLUMNS} FROM runs INDEXED BY runs_leases WHERE lease_until IS NOT NULL ORDER BY seq`)
    .all()
    .filter((row) => (row.leaseUntil ?? 0) <= now || isGone(row.leaseOwner ?? ""))
    .map(fromRow);
}

/** Whether a turn may be due; those of sessions that are busy count too. */
export const hasDueTurn = (db: Database, now: number): boolean =>
  db
    .query<{ seq: number }, [number]>(
      `SELECT seq FROM runs WHERE finished_at IS NULL AND step = 'turn' AND state = 'queued' AND next_at <= ? LIMIT 1`,
    )
    .get(now) !== null;

/** Runs whose reply is under way. */
export const pendingReplies = (db: Database): string[] =>
  db
    .query<{ id: string }, []>("SELECT id FROM runs WHERE reply = 'pending' ORDER BY seq")
    .all()
    .map((row) => row.id);
