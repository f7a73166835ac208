/** The first open message of every lane: in a lane nothing overtakes. */
import { queryAll, type Script } from "../../database/store.ts";
import type { OutboxRow } from "./tables.ts";

const LANES_MAX = 100_000; // looked at in one go; the others come when these are done

/** All of a message that says whether it may be sent now. */
export type Head = Pick<OutboxRow, "seq" | "lane" | "channel" | "attempts" | "next_at" | "sending_at" | "created_at">;

/**
 * Jumps from lane to lane through the index of open messages: as many steps as lanes, however long those are. Oldest
 * first.
 */
export const dueHeads = (): Script<Head[]> => queryAll<Head>(HEADS);

const HEADS = `
  WITH RECURSIVE lanes (lane) AS (
    SELECT MIN(lane) FROM outbox WHERE settled_at IS NULL
    UNION ALL
    SELECT (SELECT MIN(lane) FROM outbox WHERE settled_at IS NULL AND lane > lanes.lane)
      FROM lanes WHERE lanes.lane IS NOT NULL
  )
  SELECT outbox.seq, outbox.lane, outbox.channel, outbox.attempts, outbox.next_at, outbox.sending_at, outbox.created_at
    FROM (SELECT lane FROM lanes WHERE lane IS NOT NULL LIMIT ${LANES_MAX}) AS lanes
    JOIN outbox ON outbox.seq = (SELECT MIN(seq) FROM outbox WHERE settled_at IS NULL AND lane = lanes.lane)
  ORDER BY outbox.next_at, outbox.seq`;
