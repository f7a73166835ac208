/**
 * The table of messages to send: one row per message of a text. A row becomes `sending` on the disk before its request
 * leaves, so that after a crash the messages which may have arrived are known. Times are epoch ms.
 */
import type { Migration } from "../../database/database.ts";

export const OUTBOX = `
  CREATE TABLE outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,        -- the same for every attempt
    group_id TEXT NOT NULL,          -- the text that it is a part of
    channel TEXT NOT NULL,
    recipient TEXT NOT NULL,
    thread TEXT NOT NULL DEFAULT '',
    lane TEXT COLLATE BINARY NOT NULL, -- channel, recipient and thread: within it order is kept
    chunk_index INTEGER NOT NULL,
    chunk_count INTEGER NOT NULL,
    text TEXT NOT NULL,
    state TEXT NOT NULL,             -- queued, sending; sent, failed, unknown, cancelled
    attempts INTEGER NOT NULL DEFAULT 0,
    next_at INTEGER NOT NULL,        -- not before
    sending_at INTEGER,              -- when the last attempt began
    uncertain_at INTEGER,            -- when the first attempt began that may have arrived
    message_id TEXT,                 -- the platform's receipt
    reason TEXT,
    created_at INTEGER NOT NULL,
    settled_at INTEGER,
    UNIQUE (group_id, channel, recipient, thread, chunk_index)
  ) STRICT;
  CREATE INDEX outbox_open ON outbox (lane, seq) WHERE settled_at IS NULL;
  CREATE INDEX outbox_settled ON outbox (settled_at) WHERE settled_at IS NOT NULL;
`;

export const CANCELS = `
  ALTER TABLE outbox ADD COLUMN cancel_at INTEGER; -- when it was called back while it was being sent
`;

export const outboxMigrations: readonly Migration[] = [
  { name: "channels: outbox", sql: OUTBOX },
  { name: "channels: calling back", sql: CANCELS },
];

export interface OutboxRow {
  readonly seq: number;
  readonly key: string;
  readonly group_id: string;
  readonly channel: string;
  readonly recipient: string;
  readonly thread: string;
  readonly lane: string;
  readonly chunk_index: number;
  readonly chunk_count: number;
  readonly text: string;
  readonly state: "queued" | "sending" | "sent" | "failed" | "unknown" | "cancelled";
  readonly attempts: number;
  readonly next_at: number;
  readonly sending_at: number | null;
  readonly uncertain_at: number | null;
  readonly message_id: string | null;
  readonly reason: string | null;
  readonly created_at: number;
  readonly settled_at: number | null;
  readonly cancel_at: number | null;
}
