/** Forgets deliveries that are over, in small transactions, so that none delays other writes for long. */
import type { Writer } from "../../base/database.ts";
import { forgetItems } from "./items.ts";

const BATCH = 200;

/** Returns how many went. What is open, has a reply or callback under way, or holds a key, stays. */
export async function pruneDeliveries(
  writer: Writer,
  { now, retentionMs }: { now: number; retentionMs: number },
): Promise<number> {
  let total = 0;
  for (;;) {
    const gone = await writer.write((db) =>
      db
        .query(
          `DELETE FROM deliveries WHERE seq IN (
             SELECT seq FROM deliveries AS old WHERE received_at < $before AND keys_until <= $now
               AND NOT EXISTS (SELECT 1 FROM runs WHERE delivery_id = old.id
                 AND (finished_at IS NULL OR finished_at >= $before OR reply = 'pending'))
               AND NOT EXISTS (SELECT 1 FROM callbacks JOIN runs ON runs.id = run_id
                 WHERE delivery_id = old.id AND callbacks.state = 'pending')
             ORDER BY received_at LIMIT ${BATCH})
           RETURNING seq`,
        )
        .all({ before: now - retentionMs, now }),
    );
    total += gone.length;
    if (gone.length < BATCH) break;
  }
  while ((await writer.write((db) => forgetItems(db, { now, most: BATCH }))) === BATCH);
  return total;
}
