/** The agent's tables in the gateway's database. Times are epoch milliseconds. */
import type { Migration } from "../database/database.ts";

export const SESSIONS = `
  CREATE TABLE sessions (
    key TEXT COLLATE BINARY PRIMARY KEY,
    is_ephemeral INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    ended_at INTEGER,
    last_channel TEXT,
    last_to TEXT,
    last_thread TEXT
  ) STRICT;
  CREATE INDEX sessions_updated ON sessions (updated_at);
  -- transcripts
  CREATE TABLE session_entries (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    session_key TEXT COLLATE BINARY NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    run_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (run_id, position)
  ) STRICT;
  CREATE INDEX session_entries_key ON session_entries (session_key, kind, seq);
`;

export const EVENTS = `
  -- events that wait for the next turn of their session
  CREATE TABLE session_events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session_key TEXT COLLATE BINARY NOT NULL,
    text TEXT NOT NULL,
    is_wrapped INTEGER NOT NULL,
    source TEXT NOT NULL,
    dedupe_key TEXT,
    wants_heartbeat INTEGER NOT NULL,
    is_delivered INTEGER NOT NULL,
    count INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX session_events_key ON session_events (session_key, seq);
  CREATE INDEX session_events_dedupe ON session_events (session_key, dedupe_key) WHERE dedupe_key IS NOT NULL;
  CREATE TABLE heartbeats (
    session_key TEXT COLLATE BINARY PRIMARY KEY,
    last_at INTEGER NOT NULL,
    sent_text TEXT,
    sent_at INTEGER
  ) STRICT;
`;

/** Makes checking a full session one row read, however many events wait. */
export const EVENT_COUNTS = `
  CREATE TABLE session_event_counts (
    session_key TEXT COLLATE BINARY PRIMARY KEY,
    n INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
`;

export const agentMigrations: readonly Migration[] = [
  {
    name: "agent-1",
    sql: SESSIONS + EVENTS,
  },
  {
    name: "agent: events counted",
    sql: `${EVENT_COUNTS}
      INSERT INTO session_event_counts SELECT session_key, count(*) FROM session_events GROUP BY session_key;
      CREATE TRIGGER session_events_came AFTER INSERT ON session_events
        BEGIN INSERT INTO session_event_counts VALUES (NEW.session_key, 1)
          ON CONFLICT (session_key) DO UPDATE SET n = n + 1; END;
      CREATE TRIGGER session_events_went AFTER DELETE ON session_events
        BEGIN UPDATE session_event_counts SET n = n - 1 WHERE session_key = OLD.session_key;
          DELETE FROM session_event_counts WHERE session_key = OLD.session_key AND n = 0; END;
    `,
  },
];
