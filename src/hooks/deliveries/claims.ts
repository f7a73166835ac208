/**
 * Which turns begin next, and whose they are: a worker takes runs for the length of a lease and renews that while they
 * run. All functions belong inside a transaction. Statements that are asked in every round name their index: without
 * statistics the planner takes another, and reads all that waits.
 */
import type { Database } from "../../base/database.ts";
import { asTurn, COLUMNS, fromRow, moveRun, type Row, type Run, type TurnRun } from "./runs.ts";

/** After so many crashes of its process a run is begun alone, so that the next crash tells whether it is the cause. */
const SUSPECT_CRASHES = 2;

const WAITING = "finished_at IS NULL AND step = 'turn' AND state = 'queued'";

export interface ClaimOptions {
  readonly owner: string;
  readonly now: number;
  readonly leaseUntil: number;
  /** Turns that may begin now. */
  readonly free: number;
  /** Turns of a mapping that may run at once; undefined: as many as there may be. */
  readonly limitOf: (mappingId: string) => number | undefined;
}

/**
 * Takes runs whose turn is due: of each session only the oldest, lanes in turn (those with the fewest running first),
 * the oldest of a lane first. A suspect of crashes runs alone: once one is due, nothing begins until it had its turn.
 */
export function claimTurns(db: Database, { owner, now, leaseUntil, free, limitOf }: ClaimOptions): TurnRun[] {
  if (free <= 0) return [];
  const running = runningTurns(db);
  if (running.some(isSuspect)) return [];
  const due = dueTurns(db, { now, perLane: free });
  const suspect = due.find(isSuspect);
  const chosen = suspect ? (running.length > 0 ? [] : [suspect]) : inTurn(due, { running, free, limitOf });
  const lease = { owner, until: leaseUntil };
  return chosen.map((row) => asTurn(moveRun(db, fromRow(row), "claim", now, { attempts: row.attempts + 1, lease })));
}

/** Whether a run may be what its process crashes of. */
export const isSuspect = ({ suspected }: Pick<Run, "suspected">): boolean => suspected >= SUSPECT_CRASHES;

type RunningTurn = Pick<Run, "lane" | "suspected">;

const runningTurns = (db: Database): RunningTurn[] =>
  db
    .query<RunningTurn, []>(
      "SELECT lane, suspected FROM runs WHERE finished_at IS NULL AND step = 'turn' AND state = 'running'",
    )
    .all();

/** One of each lane, then another of each. */
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
 * The first turn of each session that is due; a turn that runs, or waits for its time, blocks the later ones. Jumps
 * from lane to lane and reads each only until it has enough, so that it costs what is taken and not what waits.
 */
function dueTurns(db: Database, { now, perLane }: { now: number; perLane: number }): Row[] {
  return db
    .query<Row, Record<string, number>>(
      `WITH RECURSIVE lanes (lane) AS (
         SELECT min(lane) FROM runs INDEXED BY runs_due WHERE ${WAITING}
         UNION ALL
         SELECT (SELECT min(lane) FROM runs INDEXED BY runs_due WHERE ${WAITING} AND lane > lanes.lane) FROM lanes
           WHERE lanes.lane IS NOT NULL
       )
       SELECT ${COLUMNS} FROM runs WHERE seq IN (
         SELECT head.seq FROM lanes JOIN runs AS head ON head.seq IN (
           SELECT seq FROM runs AS run INDEXED BY runs_due WHERE ${WAITING} AND run.lane = lanes.lane
             AND next_at <= $now AND NOT EXISTS (
               SELECT 1 FROM runs AS earlier WHERE earlier.finished_at IS NULL AND earlier.step = 'turn'
                 AND earlier.session_key = run.session_key AND earlier.seq < run.seq)
           ORDER BY seq LIMIT $perLane)
       ) ORDER BY seq`,
    )
    .all({ now, perLane });
}

/** Whether a turn may be due; those of sessions that are busy count too. */
export const hasDueTurn = (db: Database, now: number): boolean =>
  db
    .query<{ seq: number }, [number]>(
      `SELECT seq FROM runs INDEXED BY runs_next WHERE ${WAITING} AND next_at <= ? LIMIT 1`,
    )
    .get(now) !== null;

/** When the next turn that waits for its time is due. */
export const nextTurnAt = (db: Database, now: number): number | undefined =>
  db
    .query<{ at: number | null }, [number]>(
      `SELECT min(next_at) AS at FROM runs INDEXED BY runs_next WHERE ${WAITING} AND next_at > ?`,
    )
    .get(now)?.at ?? undefined;

/** What became of runs whose leases were to be renewed. */
export interface Renewed {
  /** Somebody wants them ended. */
  readonly unwanted: readonly string[];
  /** They are not this owner's any more. */
  readonly lost: readonly string[];
}

/** Makes leases last longer, those that are the owner's still. */
export function renewLeases(
  db: Database,
  runIds: readonly string[],
  { owner, until }: { owner: string; until: number },
): Renewed {
  const kept = new Map(
    db
      .query<{ id: string; cancelAt: number | null }, (string | number)[]>(
        `UPDATE runs SET lease_until = ? WHERE state = 'running' AND lease_owner = ?
           AND id IN (${runIds.map(() => "?").join(", ")}) RETURNING id, cancel_at AS cancelAt`,
      )
      .all(until, owner, ...runIds)
      .map(({ id, cancelAt }) => [id, cancelAt]),
  );
  const unwanted = [...kept].filter(([, cancelAt]) => cancelAt !== null).map(([id]) => id);
  return { unwanted, lost: runIds.filter((id) => !kept.has(id)) };
}

/** Runs that somebody has under a lease. */
export const leasedRuns = (db: Database): Run[] =>
  db
    .query<Row, []>(`SELECT ${COLUMNS} FROM runs INDEXED BY runs_leases WHERE lease_until IS NOT NULL ORDER BY seq`)
    .all()
    .map(fromRow);
