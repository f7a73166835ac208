/**
 * Tables of accepted requests: `deliveries` (requests), `runs` (their actions) and `callbacks` (outcomes to report).
 * Times are epoch milliseconds. Triggers count the open runs, so that checking for a full queue reads one row.
 */
import type { Migration } from "../../../database/database.ts";
import { ITEMS } from "./known-items.ts";

export const DELIVERIES = `
  CREATE TABLE deliveries (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    request_id TEXT NOT NULL,
    received_at INTEGER NOT NULL,
    path TEXT NOT NULL,
    lane TEXT COLLATE BINARY NOT NULL, -- what it competes as: a mapping, or a fixed endpoint
    mapping_id TEXT,
    auth_kind TEXT NOT NULL,
    auth_id TEXT NOT NULL,
    provider_delivery_id TEXT,
    idempotency_key TEXT,
    keys_until INTEGER NOT NULL,     -- when both keys are forgotten
    body_sha256 TEXT NOT NULL,
    body_bytes INTEGER NOT NULL,
    body BLOB,
    headers TEXT NOT NULL,           -- JSON, without credentials
    response TEXT NOT NULL,          -- JSON: status and body, for who asks again
    replay_of TEXT
  ) STRICT;
  CREATE UNIQUE INDEX deliveries_idempotency ON deliveries (auth_kind, auth_id, path, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
  CREATE UNIQUE INDEX deliveries_provider ON deliveries (lane, provider_delivery_id)
    WHERE provider_delivery_id IS NOT NULL;
  CREATE INDEX deliveries_age ON deliveries (received_at);
`;

export const RUNS = `
  CREATE TABLE runs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    delivery_id TEXT NOT NULL REFERENCES deliveries (id) ON DELETE CASCADE,
    item INTEGER NOT NULL,           -- its place among the delivery's actions
    lane TEXT COLLATE BINARY NOT NULL,
    session_key TEXT COLLATE BINARY NOT NULL,
    action TEXT NOT NULL,            -- JSON: a HookAction
    state TEXT NOT NULL,
    step TEXT NOT NULL,              -- what comes next: turn, event, nothing
    attempts INTEGER NOT NULL DEFAULT 0,
    next_at INTEGER NOT NULL,        -- not before
    lease_owner TEXT,
    lease_until INTEGER,
    cancel_at INTEGER,               -- when somebody asked for its end
    created_at INTEGER NOT NULL,
    started_at INTEGER,
    finished_at INTEGER,
    outcome TEXT,                    -- how the turn ended
    reason TEXT,                     -- why it failed, or waits
    answer TEXT,
    model TEXT,
    usage TEXT,                      -- JSON
    reply TEXT NOT NULL DEFAULT 'none',
    reply_target TEXT,               -- JSON: channel and recipient
    reply_reason TEXT,
    replay_of TEXT
  ) STRICT;
  CREATE INDEX runs_delivery ON runs (delivery_id);
  CREATE INDEX runs_open ON runs (step, state, seq) WHERE finished_at IS NULL;
  CREATE INDEX runs_leases ON runs (lease_until) WHERE lease_until IS NOT NULL;
  CREATE INDEX runs_replies ON runs (seq) WHERE reply = 'pending';
`;

export const OPEN_RUNS = `
  CREATE TABLE open_runs (one INTEGER PRIMARY KEY CHECK (one = 1), n INTEGER NOT NULL) STRICT;
  INSERT INTO open_runs VALUES (1, 0);
`;

const OPEN_RUN_TRIGGERS = `
  CREATE INDEX runs_session ON runs (session_key, seq) WHERE finished_at IS NULL;
  CREATE TRIGGER runs_opened AFTER INSERT ON runs WHEN NEW.finished_at IS NULL
    BEGIN UPDATE open_runs SET n = n + 1; END;
  CREATE TRIGGER runs_closed AFTER UPDATE OF finished_at ON runs
    WHEN OLD.finished_at IS NULL AND NEW.finished_at IS NOT NULL
    BEGIN UPDATE open_runs SET n = n - 1; END;
  CREATE TRIGGER runs_gone AFTER DELETE ON runs WHEN OLD.finished_at IS NULL
    BEGIN UPDATE open_runs SET n = n - 1; END;
`;

/** Makes checking a lane's share of the queue one row read too. */
export const OPEN_LANES = `
  CREATE TABLE open_lanes (lane TEXT COLLATE BINARY PRIMARY KEY, n INTEGER NOT NULL) STRICT, WITHOUT ROWID;
`;

const OPEN_LANE_TRIGGERS = `
  INSERT INTO open_lanes SELECT lane, count(*) FROM runs WHERE finished_at IS NULL GROUP BY lane;
  CREATE TRIGGER lanes_opened AFTER INSERT ON runs WHEN NEW.finished_at IS NULL
    BEGIN INSERT INTO open_lanes VALUES (NEW.lane, 1) ON CONFLICT (lane) DO UPDATE SET n = n + 1; END;
  CREATE TRIGGER lanes_closed AFTER UPDATE OF finished_at ON runs
    WHEN OLD.finished_at IS NULL AND NEW.finished_at IS NOT NULL
    BEGIN UPDATE open_lanes SET n = n - 1 WHERE lane = OLD.lane; END;
  CREATE TRIGGER lanes_gone AFTER DELETE ON runs WHEN OLD.finished_at IS NULL
    BEGIN UPDATE open_lanes SET n = n - 1 WHERE lane = OLD.lane; END;
`;

export const CALLBACKS = `
  CREATE TABLE callbacks (
    run_id TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    url TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL,             -- pending, sent, failed
    attempts INTEGER NOT NULL DEFAULT 0,
    next_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    reason TEXT
  ) STRICT;
  CREATE INDEX callbacks_due ON callbacks (next_at) WHERE state = 'pending';
`;

/**
 * Indexes of waiting turns: `runs_next` by due time, `runs_turns` to find earlier turns of a session. A session has at
 * most one running turn, on any node.
 */
export const TURNS = `
  CREATE INDEX runs_turns ON runs (session_key, seq) WHERE finished_at IS NULL AND step = 'turn';
  CREATE INDEX runs_next ON runs (next_at) WHERE finished_at IS NULL AND step = 'turn' AND state = 'queued';
  CREATE UNIQUE INDEX runs_one_running ON runs (session_key) WHERE finished_at IS NULL AND state = 'running';
  ALTER TABLE runs ADD COLUMN mapping_id TEXT;
`;

/** A running turn returns to the queue if its session has an earlier turn. */
const REQUEUE = `
  UPDATE runs SET state = 'queued', lease_owner = NULL, lease_until = NULL
    WHERE finished_at IS NULL AND state = 'running' AND EXISTS (SELECT 1 FROM runs AS earlier
      WHERE earlier.finished_at IS NULL AND earlier.state = 'running'
        AND earlier.session_key = runs.session_key AND earlier.seq < runs.seq);
`;

/** `runs_due` has the order of claims. */
const CLAIMS = `
  DROP INDEX runs_session;
  CREATE INDEX runs_due ON runs (lane, seq, session_key, next_at)
    WHERE finished_at IS NULL AND step = 'turn' AND state = 'queued';
  UPDATE runs SET mapping_id = (SELECT mapping_id FROM deliveries WHERE deliveries.id = delivery_id);
`;

/** Spares statements from parsing an action. */
const KINDS = `
  ALTER TABLE runs ADD COLUMN kind TEXT NOT NULL DEFAULT 'agent';
  UPDATE runs SET kind = action ->> 'kind';
`;

/** `workers` has a row for each worker that has not shut down cleanly: a row found at startup means a crash. */
export const WORKERS = `
  CREATE TABLE workers (owner TEXT PRIMARY KEY, started_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
`;

export const CRASHES = `
  ALTER TABLE runs ADD COLUMN crashes INTEGER NOT NULL DEFAULT 0;          -- of its process, while it ran
  ALTER TABLE runs ADD COLUMN suspected INTEGER NOT NULL DEFAULT 0;        -- of those, since it was last cleared
  ALTER TABLE runs ADD COLUMN suspected_alone INTEGER NOT NULL DEFAULT 0;  -- of those, with no other run beside it
`;

/** A delivery's subject, for operators. */
export const TITLES = "ALTER TABLE deliveries ADD COLUMN title TEXT;";

/** For finding runs to replay among many that need none. */
export const REPLAYS = `
  CREATE INDEX runs_dead ON runs (seq) WHERE state = 'dead';
  CREATE INDEX runs_lost ON runs (seq) WHERE reply = 'failed';
  CREATE INDEX runs_replays ON runs (replay_of) WHERE replay_of IS NOT NULL;
`;

export const deliveryMigrations: readonly Migration[] = [
  { name: "hooks: deliveries", sql: DELIVERIES },
  { name: "hooks: runs", sql: RUNS + OPEN_RUNS + OPEN_RUN_TRIGGERS },
  { name: "hooks: callbacks", sql: CALLBACKS },
  { name: "hooks: items", sql: ITEMS },
  { name: "hooks: open runs by lane", sql: OPEN_LANES + OPEN_LANE_TRIGGERS },
  { name: "hooks: turns by lane and session", sql: REQUEUE + TURNS + CLAIMS },
  { name: "hooks: crashes", sql: WORKERS + CRASHES },
  { name: "hooks: kinds of runs", sql: KINDS },
  { name: "hooks: titles of deliveries", sql: TITLES },
  { name: "hooks: replays of many", sql: REPLAYS },
];
