/** Rows of runs: makes and finds them, and moves them from state to state. */
import { assert } from "../../../../base/index.ts";
import { insertAll, queryAll, queryOne, type Transaction, type SqlText } from "../../../database/store.ts";
import type { Target } from "../../../channels/channel.ts";
import type { AgentAction, HookAction } from "../../action.ts";
import { isFinal, nextState, type Outcome, type ReplyState, type RunEvent, type RunState } from "./state.ts";

/** The next step of an open run: `turn` runs the model, `event` posts the main session's event. */
export type Step = "turn" | "event";

export interface Run {
  readonly seq: number;
  readonly id: string;
  readonly deliveryId: string;
  /** The lane; compared, never parsed. */
  readonly lane: string;
  /** Null: a fixed endpoint. */
  readonly mappingId: string | null;
  readonly sessionKey: string;
  readonly action: HookAction;
  readonly state: RunState;
  readonly step: Step;
  /** Number of turns begun. */
  readonly attempts: number;
  readonly nextAt: number;
  readonly leaseOwner: string | null;
  readonly leaseUntil: number | null;
  readonly cancelAt: number | null;
  /** Number of crashes of its process while it ran. */
  readonly crashes: number;
  /** Crashes since it was last cleared of suspicion. */
  readonly suspected: number;
  /** Suspected crashes during which no other run ran. */
  readonly suspectedAlone: number;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  readonly outcome: Outcome | null;
  readonly reason: string | null;
  readonly answer: string | null;
  readonly reply: ReplyState;
  /** JSON; null: no target was found. */
  readonly replyTarget: string | null;
}

/** A run of an agent: only these have turns. */
export interface TurnRun extends Run {
  readonly action: AgentAction;
}

/** Asserts that the run belongs to an agent. */
export function asTurn(run: Run): TurnRun {
  const { action } = run;
  assert(action.kind === "agent", `run ${run.id} is a ${action.kind}, which has no turn`);
  return { ...run, action };
}

export const COLUMNS = `seq, id, delivery_id AS "deliveryId", lane, mapping_id AS "mappingId",
  session_key AS "sessionKey", action, state, step, attempts, next_at AS "nextAt", lease_owner AS "leaseOwner",
  lease_until AS "leaseUntil", cancel_at AS "cancelAt", crashes, suspected, suspected_alone AS "suspectedAlone",
  created_at AS "createdAt", started_at AS "startedAt", finished_at AS "finishedAt", outcome, reason, answer, reply,
  reply_target AS "replyTarget"`;

export type Row = Omit<Run, "action"> & { readonly action: string };
/** insertRuns wrote the action. */
export const fromRow = (row: Row): Run => ({ ...row, action: JSON.parse(row.action) as HookAction });

/** Maps a run to its session. `requested` undefined: a new session. */
export type SessionKeyOf = (question: {
  readonly requested: string | undefined;
  readonly runId: string;
  readonly agentId?: string;
}) => string;

export interface NewRun {
  readonly id: string;
  readonly deliveryId: string;
  /** Index among the delivery's new runs. */
  readonly item: number;
  readonly lane: string;
  readonly mappingId: string | null;
  readonly sessionKey: string;
  readonly action: HookAction;
  readonly createdAt: number;
  readonly replayOf?: string;
}

export interface NewRuns {
  readonly deliveryId: string;
  readonly lane: string;
  readonly mappingId: string | null;
  readonly runs: readonly { readonly id: string; readonly action: HookAction; readonly replayOf?: string }[];
  readonly sessionKeyOf: SessionKeyOf;
  readonly now: number;
}

/** Passes on errors of `sessionKeyOf`. */
export const newRuns = ({ runs, sessionKeyOf, now, ...shared }: NewRuns): NewRun[] =>
  runs.map(({ id, action, replayOf }, item) => ({
    ...shared,
    id,
    item,
    sessionKey: action.kind === "agent" ? sessionKeyOf(keyQuestion(action, id)) : "main",
    action,
    createdAt: now,
    ...(replayOf === undefined ? {} : { replayOf }),
  }));

/** @param isOver true for a run with no work left */
export const insertRuns = (runs: readonly NewRun[], isOver: (run: NewRun) => boolean): Transaction<void> =>
  insertAll({
    table: "runs",
    columns: NEW_COLUMNS,
    rows: runs.map((run) => {
      const { id, deliveryId, item, lane, mappingId, sessionKey, action, createdAt, replayOf = null } = run;
      const [state, outcome, finishedAt] = isOver(run) ? ["succeeded", "ok", createdAt] : ["queued", null, null];
      const step: Step = action.kind === "agent" ? "turn" : "event";
      const what = [sessionKey, action.kind, JSON.stringify(action), state, step];
      return [id, deliveryId, item, lane, mappingId, ...what, createdAt, createdAt, finishedAt, outcome, replayOf];
    }),
  });

const NEW_COLUMNS = `id delivery_id item lane mapping_id session_key kind action state step next_at created_at
  finished_at outcome replay_of`.split(/\s+/);

const keyQuestion = ({ sessionKey, agentId }: AgentAction, runId: string): Parameters<SessionKeyOf>[0] => ({
  requested: sessionKey,
  runId,
  ...(agentId === undefined ? {} : { agentId }),
});

export function* findRun(id: string): Transaction<Run | undefined> {
  const row = yield* queryOne<Row>(`SELECT ${COLUMNS} FROM runs WHERE id = $1`, id);
  return row && fromRow(row);
}

/** The channel of a run's reply: its id, or `last` if no target was found. */
export function replyChannelOf({ replyTarget, action }: Pick<Run, "replyTarget" | "action">): string {
  const target = JSON.parse(replyTarget ?? "{}") as Partial<Target>; // the worker wrote it
  return target.channel ?? (action.kind === "agent" ? action.channel : "last");
}

/** Columns that a transition changes besides the state. */
export interface RunChanges {
  readonly step?: Step;
  readonly nextAt?: number;
  readonly attempts?: number;
  readonly outcome?: Outcome;
  readonly reason?: string | null;
  readonly lease?: { readonly owner: string; readonly until: number };
}

/**
 * Moves a run. Every move except `claim` ends a lease. Asserts that the event is possible, and that the run is
 * unchanged since the caller read it.
 */
export function* moveRun(run: Run, event: RunEvent, now: number, changes: RunChanges = {}): Transaction<Run> {
  const state = nextState(run.state, event);
  assert(state !== undefined, `run ${run.id} is ${run.state}: cannot ${event}`);
  const row = yield* queryOne<Row>(
    MOVE,
    state,
    changes.step ?? run.step,
    changes.nextAt ?? run.nextAt,
    changes.attempts ?? run.attempts,
    changes.outcome ?? run.outcome,
    changes.reason === undefined ? run.reason : changes.reason,
    changes.lease?.owner ?? null,
    changes.lease?.until ?? null,
    state === "running" ? now : run.startedAt,
    isFinal(state) ? now : null,
    run.id,
    run.state,
    run.leaseOwner,
  );
  assert(row, `run ${run.id} is not ${run.state} any more, or another's`);
  return { ...row, action: run.action };
}

const MOVE = `
  UPDATE runs SET state = $1, step = $2, next_at = $3, attempts = $4, outcome = $5, reason = $6, lease_owner = $7,
    lease_until = $8, started_at = $9, finished_at = $10
  WHERE id = $11 AND state = $12 AND lease_owner IS NOT DISTINCT FROM $13 RETURNING ${COLUMNS}`;

/** Runs whose event is due, oldest first. */
export function* dueEvents(limit: number): Transaction<Run[]> {
  return (yield* queryAll<Row>(DUE_EVENTS, limit)).map(fromRow);
}

const DUE_EVENTS: SqlText = {
  sqlite: `SELECT ${COLUMNS} FROM runs WHERE finished_at IS NULL AND step = 'event' AND state = 'queued'
    ORDER BY seq LIMIT $1`,
  // this order makes PostgreSQL use `runs_open`
  postgres: `SELECT ${COLUMNS} FROM runs WHERE finished_at IS NULL AND step BETWEEN 'event' AND 'event'
    AND state = 'queued' ORDER BY step, seq LIMIT $1`,
};

/** True if a run with a due event needs a heartbeat. */
export function* isHeartbeatAwaited(): Transaction<boolean> {
  return (yield* queryOne(AWAITED)) !== undefined;
}

/**
 * Matches `mode` of a wake and `wakeMode` of an agent in an action's JSON: inside a text the quotes would be escaped.
 */
const AWAITED = `SELECT 1 FROM runs WHERE finished_at IS NULL AND step = 'event' AND state = 'queued'
  AND action LIKE '%ode":"now"%' LIMIT 1`;

/** Runs whose reply is under way. */
export function* pendingReplies(): Transaction<string[]> {
  const rows = yield* queryAll<{ id: string }>("SELECT id FROM runs WHERE reply = 'pending' ORDER BY seq");
  return rows.map(({ id }) => id);
}
