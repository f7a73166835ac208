/** The tables of deliveries in PostgreSQL, and their triggers. */
import type { Migration } from "../../../database/database.ts";
import { inPostgres } from "../../../database/postgres/tables.ts";
import { ITEMS } from "./known-items.ts";
import {
  CALLBACKS,
  CRASHES,
  DELIVERIES,
  OPEN_LANES,
  OPEN_RUNS,
  REPLAYS,
  RUNS,
  TITLES,
  TURNS,
  WORKERS,
} from "./tables.ts";

/** A run's row is written often; `is_first` marks the first open turn of its session. */
const RUN_OPTIONS = `
  ALTER TABLE runs ADD COLUMN kind TEXT NOT NULL, ADD COLUMN is_first BOOLEAN NOT NULL DEFAULT FALSE;
  ALTER TABLE runs SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
  CREATE INDEX runs_due ON runs (lane, seq, next_at)
    WHERE finished_at IS NULL AND step = 'turn' AND state = 'queued' AND is_first;
  CREATE INDEX runs_first ON runs (session_key) WHERE is_first;
`;

/**
 * Marks the first turn of each session, so that the cost of a claim does not depend on the number of later turns. A
 * new run is last; each end, start or deletion of a turn promotes the next one.
 */
const FIRST_TURNS = `
  CREATE FUNCTION runs_enter() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    NEW.is_first := NOT EXISTS (SELECT 1 FROM runs
      WHERE finished_at IS NULL AND step = 'turn' AND session_key = NEW.session_key);
    RETURN NEW;
  END $$;
  CREATE FUNCTION runs_advance() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE first BIGINT := (SELECT min(seq) FROM runs
    WHERE finished_at IS NULL AND step = 'turn' AND session_key = OLD.session_key);
  BEGIN
    UPDATE runs SET is_first = FALSE WHERE session_key = OLD.session_key AND is_first AND seq IS DISTINCT FROM first;
    UPDATE runs SET is_first = TRUE WHERE seq = first AND NOT is_first;
    RETURN NULL;
  END $$;
  CREATE TRIGGER runs_entered BEFORE INSERT ON runs
    FOR EACH ROW WHEN (NEW.finished_at IS NULL AND NEW.step = 'turn') EXECUTE FUNCTION runs_enter();
  CREATE TRIGGER runs_advanced AFTER UPDATE OF finished_at, step ON runs
    FOR EACH ROW WHEN ((OLD.finished_at IS NULL AND OLD.step = 'turn') <> (NEW.finished_at IS NULL AND NEW.step = 'turn'))
    EXECUTE FUNCTION runs_advance();
  CREATE TRIGGER runs_left AFTER DELETE ON runs
    FOR EACH ROW WHEN (OLD.finished_at IS NULL AND OLD.step = 'turn') EXECUTE FUNCTION runs_advance();
`;

/** Writes are serial: a single count row for all, and one for each lane, block no transaction. */
const COUNT_RUNS = `
  ALTER TABLE open_runs SET (fillfactor = 50);
  ALTER TABLE open_lanes SET (fillfactor = 50);
  CREATE FUNCTION runs_count() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    UPDATE open_runs SET n = n - 1;
    UPDATE open_lanes SET n = n - 1 WHERE lane = OLD.lane;
    RETURN NULL;
  END $$;
  CREATE FUNCTION runs_count_new() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO open_lanes AS lanes SELECT lane, count(*) FROM added WHERE finished_at IS NULL GROUP BY lane
      ON CONFLICT (lane) DO UPDATE SET n = lanes.n + excluded.n;
    IF FOUND THEN
      UPDATE open_runs SET n = n + (SELECT count(*) FROM added WHERE finished_at IS NULL);
    END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER runs_opened AFTER INSERT ON runs REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION runs_count_new();
  CREATE TRIGGER runs_closed AFTER UPDATE OF finished_at ON runs
    FOR EACH ROW WHEN (OLD.finished_at IS NULL AND NEW.finished_at IS NOT NULL) EXECUTE FUNCTION runs_count();
  CREATE TRIGGER runs_gone AFTER DELETE ON runs FOR EACH ROW WHEN (OLD.finished_at IS NULL)
    EXECUTE FUNCTION runs_count();
`;

/** A run is stored and deleted with its delivery. A foreign key would cost every new run. */
const FORGET_RUNS = `
  ALTER TABLE runs DROP CONSTRAINT runs_delivery_id_fkey;
  CREATE FUNCTION deliveries_forget() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    DELETE FROM runs WHERE delivery_id = OLD.id;
    RETURN NULL;
  END $$;
  CREATE TRIGGER deliveries_gone AFTER DELETE ON deliveries FOR EACH ROW EXECUTE FUNCTION deliveries_forget();
`;

export const deliveryMigrations: readonly Migration[] = [
  { name: "hooks: deliveries", sql: inPostgres(DELIVERIES + ITEMS) },
  { name: "hooks: runs", sql: inPostgres(RUNS + TURNS + CRASHES) + RUN_OPTIONS },
  { name: "hooks: first turns", sql: FIRST_TURNS },
  { name: "hooks: open runs", sql: inPostgres(OPEN_RUNS + OPEN_LANES) + COUNT_RUNS },
  { name: "hooks: callbacks", sql: inPostgres(CALLBACKS) },
  { name: "hooks: workers", sql: inPostgres(WORKERS) },
  { name: "hooks: runs go with their delivery", sql: FORGET_RUNS },
  { name: "hooks: titles of deliveries", sql: TITLES },
  { name: "hooks: replays of many", sql: REPLAYS },
];
