/** Finds work that can be repeated: runs that were given up, and replies that no channel took. */
import { queryAll, queryOne, type Transaction } from "../../../database/store.ts";

export const REPLAYABLE = ["dead", "replies"] as const;

const PAGE = 100;

export interface Replayable {
  readonly found: number;
  readonly runIds: readonly string[];
}

export interface ReplayFilter {
  /** `dead`: runs that were given up; `replies`: replies that failed. */
  readonly what: (typeof REPLAYABLE)[number];
  readonly path?: string | undefined;
  readonly mappingId?: string | undefined;
  /** Epoch milliseconds: only runs that ended at this time or later. */
  readonly since?: number | undefined;
  /** Id of the last run of the previous page. */
  readonly after?: string | undefined;
}

/** As in the partial indexes `runs_dead` and `runs_lost`. */
const IS_ONE = {
  dead: "state = 'dead'",
  // a recalled reply has failed as well
  replies: "reply = 'failed' AND state = 'succeeded' AND cancel_at IS NULL AND answer IS NOT NULL",
};

/** A run that was replayed before is left out: its copy has a fate of its own. */
const from = (what: ReplayFilter["what"]): string => `
  FROM runs WHERE ${IS_ONE[what]} AND finished_at >= $1
    AND (CAST($2 AS TEXT) IS NULL OR mapping_id = $2)
    AND (CAST($3 AS TEXT) IS NULL OR delivery_id IN (SELECT id FROM deliveries WHERE path = $3))
    AND seq > COALESCE((SELECT seq FROM runs WHERE id = $4), 0)
    AND NOT EXISTS (SELECT 1 FROM runs AS again WHERE again.replay_of = runs.id)`;

/** Oldest first: their number, and the ids of the first `PAGE`. */
export function* findReplayable({
  what,
  since = 0,
  mappingId,
  path,
  after = "",
}: ReplayFilter): Transaction<Replayable> {
  const values = [since, mappingId ?? null, path ?? null, after];
  const counted = yield* queryOne<{ n: number }>(`SELECT count(*) AS n ${from(what)}`, ...values);
  const rows = yield* queryAll<{ id: string }>(`SELECT id ${from(what)} ORDER BY seq LIMIT ${PAGE}`, ...values);
  return { found: counted?.n ?? 0, runIds: rows.map(({ id }) => id) };
}
