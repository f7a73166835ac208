/** Deletes finished deliveries in small transactions, so that none delays other writes for long. */
import { execute, type Store } from "../../../database/store.ts";
import { forgetItems } from "./known-items.ts";

const BATCH = 200;

/**
 * Returns the number of deleted deliveries; the signal ends it between two transactions. Keeps deliveries that are
 * open, have a reply or callback under way, or hold a key.
 */
export async function pruneDeliveries(
  store: Store,
  { now, retentionMs, signal }: { now: number; retentionMs: number; signal?: AbortSignal | undefined },
): Promise<number> {
  let total = 0;
  for (let gone = BATCH; gone >= BATCH && !signal?.aborted; total += gone) {
    gone = await store.write(() => execute(FORGET, now - retentionMs, now));
  }
  while (!signal?.aborted && (await store.write(() => forgetItems({ now, most: BATCH }))) === BATCH);
  return total;
}

const FORGET = `
  DELETE FROM deliveries WHERE seq IN (
    SELECT seq FROM deliveries AS old WHERE received_at < $1 AND keys_until <= $2
      AND NOT EXISTS (SELECT 1 FROM runs WHERE delivery_id = old.id
        AND (finished_at IS NULL OR finished_at >= $1 OR reply = 'pending'))
      AND NOT EXISTS (SELECT 1 FROM callbacks JOIN runs ON runs.id = run_id
        WHERE delivery_id = old.id AND callbacks.state = 'pending')
    ORDER BY received_at LIMIT ${BATCH})`;
