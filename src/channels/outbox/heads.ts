/** The first open message of every lane: in a lane nothing overtakes. */
import type { Database } from "../../base/database.ts";
import type { OutboxRow } from "./tables.ts";

const LANES_MAX = 100_000; // looked at in one go; the others come when these are done

/**
 * Jumps from lane to lane through the index of open messages: as many steps as lanes, however long those are. Oldest
 * first.
 */
export const dueHeads = (db: Database): OutboxRow[] =>
  db
    .query<OutboxRow, []>(
      `WITH RECURSIVE lanes (lane) AS (
         SELECT MIN(lane) FROM outbox WHERE settled_at IS NULL
         UNION ALL
         SELECT (SELECT MIN(lane) FROM outbox WHERE settled_at IS NULL AND lane > lanes.lane)
           FROM lanes WHERE lanes.lane IS NOT NULL LIMIT ${LANES_MAX}
       )
       SELECT outbox.* FROM lanes JOIN outbox ON outbox.seq =
         (SELECT MIN(seq) FROM outbox WHERE settled_at IS NULL AND lane = lanes.lane)
       WHERE lanes.lane IS NOT NULL ORDER BY outbox.next_at, outbox.seq`,
    )
    .all();
