/**
 * Chooses the next turns and their worker: a worker claims runs with a lease and renews it while they run. Statements
 * of every round name their index: without statistics SQLite's planner takes another, and reads all waiting runs.
 */
import {
  execute,
  placeholders,
  queryAll,
  queryOne,
  parallel,
  type Transaction,
  type SqlText,
} from "../../../database/store.ts";
import { asTurn, COLUMNS, fromRow, moveRun, type Row, type Run, type TurnRun } from "./runs.ts";

/** After this many crashes of its process, a run is started alone, so that the next crash reveals its cause. */
const SUSPECT_CRASHES = 2;

const WAITING = "finished_at IS NULL AND step = 'turn' AND state = 'queued'";

export interface ClaimOptions {
  readonly owner: string;
  readonly now: number;
  readonly leaseUntil: number;
  /** Number of turns that may begin now. */
  readonly free: number;
  /** Maximum number of concurrent turns of a mapping, on all nodes; undefined: unlimited. */
  readonly limitOf: (mappingId: string) => number | undefined;
}

/**
 * Claims due turns: the oldest of each session, alternating between lanes (fewest running first), the oldest of a lane
 * first. A run suspected of crashes runs alone in its process: once one is due, nothing else begins there before it.
 */
export function* claimTurns({ owner, now, leaseUntil, free, limitOf }: ClaimOptions): Transaction<TurnRun[]> {
  if (free <= 0) return [];
  const running = yield* runningTurns();
  const own = running.filter(({ leaseOwner }) => leaseOwner === owner);
  if (own.some(isSuspect)) return [];
  const [, due] = yield* parallel(sorts("off"), queryAll<Row>(DUE, now, free), sorts("on"));
  const suspect = due.find(isSuspect);
  const chosen = suspect ? (own.length > 0 ? [] : [suspect]) : inTurn(due, { running, free, limitOf });
  const lease = { owner, until: leaseUntil };
  const claimed: TurnRun[] = [];
  for (const row of chosen) {
    claimed.push(asTurn(yield* moveRun(fromRow(row), "claim", now, { attempts: row.attempts + 1, lease })));
  }
  return claimed;
}

/** True if a run is suspected of crashing its process. */
export const isSuspect = ({ suspected }: Pick<Run, "suspected">): boolean => suspected >= SUSPECT_CRASHES;

type RunningTurn = Pick<Run, "lane" | "suspected" | "leaseOwner">;

const runningTurns = (): Transaction<RunningTurn[]> =>
  queryAll<RunningTurn>(
    `SELECT lane, suspected, lease_owner AS "leaseOwner" FROM runs
     WHERE finished_at IS NULL AND step = 'turn' AND state = 'running'`,
  );

/** Takes one turn of each lane, then another of each. */
function inTurn(
  due: readonly Row[],
  { running, free, limitOf }: Pick<ClaimOptions, "free" | "limitOf"> & { readonly running: readonly RunningTurn[] },
): Row[] {
  const queues = [...Map.groupBy(due, ({ lane }) => lane)]
    .map(([lane, runs]) => {
      const ofLane = running.filter((other) => other.lane === lane).length;
      const mappingId = runs[0]?.mappingId ?? null;
      const limit = (mappingId === null ? undefined : limitOf(mappingId)) ?? Infinity;
      return { runs: runs.slice(0, Math.max(0, limit - ofLane)), running: ofLane };
    })
    .toSorted((a, b) => a.running - b.running);
  const rounds = Array.from({ length: free }, (_, round) => queues.flatMap(({ runs }) => runs.slice(round, round + 1)));
  return rounds.flat().slice(0, free);
}

/**
 * The first due turn of each session; a turn that runs, or waits for its time, blocks the later ones. Jumps from lane
 * to lane and reads each only as far as needed, so that the cost depends on the turns taken, not on those waiting.
 */
const DUE: SqlText = {
  sqlite: `WITH RECURSIVE lanes (lane) AS (
      SELECT min(lane) FROM runs INDEXED BY runs_due WHERE ${WAITING}
      UNION ALL
      SELECT (SELECT min(lane) FROM runs INDEXED BY runs_due WHERE ${WAITING} AND lane > lanes.lane) FROM lanes
        WHERE lanes.lane IS NOT NULL
    )
    SELECT ${COLUMNS} FROM runs WHERE seq IN (
      SELECT head.seq FROM lanes JOIN runs AS head ON head.seq IN (
        SELECT seq FROM runs AS run INDEXED BY runs_due WHERE ${WAITING} AND run.lane = lanes.lane
          AND next_at <= $1 AND NOT EXISTS (
            SELECT 1 FROM runs AS earlier WHERE earlier.finished_at IS NULL AND earlier.step = 'turn'
              AND earlier.session_key = run.session_key AND earlier.seq < run.seq)
        ORDER BY seq LIMIT $2)
    ) ORDER BY seq`,
  // these tables store the first turn of each session; an order that only `runs_due` has forces that index
  postgres: `WITH RECURSIVE lanes (name) AS (
      (SELECT lane FROM runs WHERE ${WAITING} AND is_first ORDER BY lane LIMIT 1)
      UNION ALL
      SELECT (SELECT lane FROM runs WHERE ${WAITING} AND is_first AND lane > lanes.name ORDER BY lane LIMIT 1)
        FROM lanes WHERE lanes.name IS NOT NULL
    )
    SELECT ${COLUMNS} FROM lanes CROSS JOIN LATERAL (
      SELECT * FROM runs WHERE ${WAITING} AND is_first AND lane BETWEEN lanes.name AND lanes.name AND next_at <= $1
      ORDER BY lane, seq LIMIT $2
    ) AS first WHERE lanes.name IS NOT NULL ORDER BY seq`,
};

/**
 * If the queue grew within a minute, PostgreSQL still has the statistics of a short one, and would sort all of it
 * instead of reading the beginning of an index.
 */
const sorts = (are: "on" | "off"): Transaction<unknown> =>
  queryOne({ sqlite: "SELECT $1", postgres: "SELECT set_config('enable_sort', $1, true)" }, are);

/**
 * After the clock was set back: a time far in the future was set by a wrong clock, and counts as due. Callbacks store
 * no time of their last try.
 * @param isSeen true if this process saw the clock set back: then all callbacks are due
 */
export function* dueAfterSetBack(now: number, { isSeen }: { isSeen: boolean }): Transaction<void> {
  yield* execute(
    `UPDATE runs SET next_at = $1 WHERE ${WAITING} AND next_at > $1 AND (created_at > $1 OR started_at > $1)`,
    now,
  );
  const whose = isSeen ? "next_at > $1" : "created_at > $1";
  yield* execute(`UPDATE callbacks SET next_at = $1 WHERE state = 'pending' AND ${whose}`, now);
}

/** True if a turn may be due, including turns of busy sessions. */
export function* hasDueTurn(now: number): Transaction<boolean> {
  return (yield* queryOne(HAS_DUE, now)) !== undefined;
}

const HAS_DUE = withIndex(`SELECT seq FROM runs INDEXED BY runs_next WHERE ${WAITING} AND next_at <= $1 LIMIT 1`);

/** Due time of the next postponed turn. */
export function* nextTurnAt(now: number): Transaction<number | undefined> {
  return (yield* queryOne<{ at: number | null }>(NEXT_AT, now))?.at ?? undefined;
}

const NEXT_AT = withIndex(`SELECT min(next_at) AS at FROM runs INDEXED BY runs_next WHERE ${WAITING} AND next_at > $1`);

/** SQLite's text, with the clause that names an index removed for PostgreSQL. */
function withIndex(sqlite: string): SqlText {
  return { sqlite, postgres: sqlite.replaceAll(/ INDEXED BY \w+/g, "") };
}

/** The outcome of renewing leases. */
export interface Renewed {
  /** Runs to be cancelled. */
  readonly unwanted: readonly string[];
  /** Runs that another owner has taken. */
  readonly lost: readonly string[];
}

/** Extends the leases that the owner still holds. */
export function* renewLeases(
  runIds: readonly string[],
  { owner, until }: { owner: string; until: number },
): Transaction<Renewed> {
  const rows = yield* queryAll<{ id: string; cancelAt: number | null }>(
    `UPDATE runs SET lease_until = $1 WHERE state = 'running' AND lease_owner = $2
       AND id IN (${placeholders(runIds, 3)}) RETURNING id, cancel_at AS "cancelAt"`,
    until,
    owner,
    ...runIds,
  );
  const kept = new Map(rows.map(({ id, cancelAt }) => [id, cancelAt]));
  const unwanted = [...kept].filter(([, cancelAt]) => cancelAt !== null).map(([id]) => id);
  return { unwanted, lost: runIds.filter((id) => !kept.has(id)) };
}

export function* leasedRuns(): Transaction<Run[]> {
  return (yield* queryAll<Row>(LEASED)).map(fromRow);
}

const LEASED = withIndex(
  `SELECT ${COLUMNS} FROM runs INDEXED BY runs_leases WHERE lease_until IS NOT NULL ORDER BY seq`,
);
