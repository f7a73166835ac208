/** The first open message of every lane: messages of a lane keep their order. */
import { queryAll, type Transaction } from "../../database/store.ts";
import type { OutboxRow } from "./tables.ts";

const LANES_MAX = 100_000; // Maximum lanes that are read at once; further lanes follow when these are done

/** The columns that decide whether a message may be sent now. */
export type LaneHead = Pick<
  OutboxRow,
  "seq" | "lane" | "channel" | "group_id" | "attempts" | "next_at" | "sending_at" | "created_at"
>;

/** Jumps from lane to lane through the index of open messages: one step per lane, however long it is. Oldest first. */
export const dueHeads = (): Transaction<LaneHead[]> => queryAll<LaneHead>(HEADS);

const HEADS = `
  WITH RECURSIVE lanes (lane) AS (
    SELECT MIN(lane) FROM outbox WHERE settled_at IS NULL
    UNION ALL
    SELECT (SELECT MIN(lane) FROM outbox WHERE settled_at IS NULL AND lane > lanes.lane)
      FROM lanes WHERE lanes.lane IS NOT NULL
  )
  SELECT outbox.seq, outbox.lane, outbox.channel, outbox.group_id, outbox.attempts, outbox.next_at, outbox.sending_at,
      outbox.created_at
    FROM (SELECT lane FROM lanes WHERE lane IS NOT NULL LIMIT ${LANES_MAX}) AS lanes
    JOIN outbox ON outbox.seq = (SELECT MIN(seq) FROM outbox WHERE settled_at IS NULL AND lane = lanes.lane)
  ORDER BY outbox.next_at, outbox.seq`;
