/**
 * Runs accepted actions again: a new delivery, linked to the old one, with new runs. The old delivery keeps its keys.
 */
import { AppError } from "../../../../base/index.ts";
import { execute, queryAll, queryOne, type Transaction } from "../../../database/store.ts";
import { storeRuns, type Posting } from "./posting.ts";
import { openRuns } from "./open-runs.ts";
import { COLUMNS, findRun, fromRow, newRuns, type NewRun, type Row, type Run, type SessionKeyOf } from "./runs.ts";
import { isFinal } from "./state.ts";

export interface Replayed {
  readonly deliveryId: string;
  readonly runIds: readonly string[];
}

export interface ReplayOptions {
  readonly now: number;
  readonly maxQueued: number;
  readonly sessionKeyOf: SessionKeyOf;
  /** Estimated time until `count` runs have ended. */
  readonly msUntil: (count: number) => number;
  readonly posting: () => Transaction<Posting>;
  /** Leaves half of the queue to new requests, and refuses a run that was replayed before. */
  readonly isOneOfMany: boolean;
}

/**
 * Throws `not_found`; `conflict` while one of the runs is open, or if it was replayed before; `busy` if the queue is
 * full.
 * @param id of a delivery, or of one of its runs
 */
export function* replayDelivery(
  id: string,
  { now, maxQueued, sessionKeyOf, msUntil, posting: openPosting, isOneOfMany }: ReplayOptions,
): Transaction<{ replayed: Replayed; after: () => void }> {
  const old = yield* runsOf(id);
  const [first] = old;
  if (!first) throw new AppError("not_found", `no run of '${id}' that can be replayed`);
  const open = old.find((run) => !isFinal(run.state));
  if (open) throw new AppError("conflict", `run '${open.id}' is ${open.state}: it can run again once it is over`);
  if (isOneOfMany && (yield* queryOne("SELECT 1 FROM runs WHERE replay_of = $1", first.id))) {
    throw new AppError("conflict", "it was replayed before");
  }
  const over = (yield* openRuns()) + old.length - (isOneOfMany ? Math.ceil(maxQueued / 2) : maxQueued);
  if (over > 0) throw new AppError("busy", "the queue is full", { retryAfterMs: msUntil(over) });
  const deliveryId = Bun.randomUUIDv7();
  yield* execute(
    `INSERT INTO deliveries (id, request_id, received_at, path, lane, mapping_id, auth_kind, auth_id, keys_until,
       body_sha256, body_bytes, body, headers, response, title, replay_of)
     SELECT CAST($1 AS TEXT), request_id, CAST($2 AS BIGINT), path, lane, mapping_id, auth_kind, auth_id, 0,
       body_sha256, body_bytes, body, headers, response, title, id FROM deliveries WHERE id = $3`,
    deliveryId,
    now,
    first.deliveryId,
  );
  const again = old.map((run) => ({ id: Bun.randomUUIDv7(), action: run.action, replayOf: run.id }));
  const { lane, mappingId } = first;
  const runs = newRuns({ deliveryId, lane, mappingId, runs: again, sessionKeyOf, now });
  const posting = yield* openPosting();
  const taken = new Set(runs.filter((run) => posting.take(run)));
  yield* storeRuns(runs, taken, { posting, also: () => [] });
  const isOver = (run: NewRun): boolean => taken.has(run);
  return { replayed: { deliveryId, runIds: runs.map((run) => run.id) }, after: () => posting.after(runs, isOver) };
}

function* runsOf(id: string): Transaction<Run[]> {
  const one = yield* findRun(id);
  if (one) return [one];
  const rows = yield* queryAll<Row>(`SELECT ${COLUMNS} FROM runs WHERE delivery_id = $1 ORDER BY item`, id);
  return rows.map(fromRow);
}
