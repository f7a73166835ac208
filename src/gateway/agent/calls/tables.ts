/**
 * The journal of calls of tool servers: the rounds of a turn that has such tools, and their calls. A row is written
 * before its call is made, so that a turn interrupted by a crash continues after its last finished call.
 */
import type { Migration } from "../../database/database.ts";

export const CALLS = `
  CREATE TABLE turn_rounds (
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    round INTEGER NOT NULL,
    message TEXT NOT NULL,           -- JSON: the model's message with its calls
    PRIMARY KEY (run_id, round)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE tool_calls (
    id TEXT PRIMARY KEY,             -- also the idempotency key
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    round INTEGER NOT NULL,
    place INTEGER NOT NULL,          -- its place among the calls of the round
    tool TEXT NOT NULL,              -- server and tool, with a slash between them
    arguments TEXT NOT NULL,         -- JSON
    digest TEXT NOT NULL,            -- of tool and arguments
    is_repeatable INTEGER NOT NULL,
    state TEXT NOT NULL,             -- planned, begun, ended, unknown
    result TEXT,                     -- JSON
    created_at INTEGER NOT NULL,
    begun_at INTEGER,
    ended_at INTEGER,
    code TEXT COLLATE BINARY,        -- names the approval that it needs; null: it needs none
    expires_at INTEGER,
    asked_at INTEGER,
    asked_in TEXT,                   -- JSON: the chat in which it was asked
    verdict TEXT,                    -- yes, no
    approved_digest TEXT,
    decided_at INTEGER,
    decided_by TEXT,
    UNIQUE (run_id, round, place)
  ) STRICT;
  CREATE UNIQUE INDEX tool_calls_code ON tool_calls (code) WHERE code IS NOT NULL;
  CREATE INDEX tool_calls_undecided ON tool_calls (created_at)
    WHERE code IS NOT NULL AND verdict IS NULL AND state = 'planned';
`;

export const callMigrations: readonly Migration[] = [{ name: "agent: calls of tool servers", sql: CALLS }];
