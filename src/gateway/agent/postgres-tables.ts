/** The agent's tables in PostgreSQL, and the triggers that count events. */
import type { Migration } from "../database/database.ts";
import { inPostgres } from "../database/postgres/tables.ts";
import { EVENT_COUNTS, EVENTS, SESSIONS } from "./tables.ts";

const COUNTED = `
  CREATE FUNCTION session_events_count() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF TG_OP = 'INSERT' THEN
      INSERT INTO session_event_counts AS counts SELECT session_key, count(*) FROM changed GROUP BY session_key
        ON CONFLICT (session_key) DO UPDATE SET n = counts.n + excluded.n;
    ELSE
      UPDATE session_event_counts AS counts SET n = counts.n - gone.n
        FROM (SELECT session_key, count(*) AS n FROM changed GROUP BY session_key) AS gone
        WHERE counts.session_key = gone.session_key;
      DELETE FROM session_event_counts WHERE n = 0 AND session_key IN (SELECT session_key FROM changed);
    END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER session_events_added AFTER INSERT ON session_events REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION session_events_count();
  CREATE TRIGGER session_events_gone AFTER DELETE ON session_events REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION session_events_count();
`;

/** One count row per connection, so that connections which add events concurrently do not block each other. */
const COUNTED_BY_CONNECTIONS = `
  ALTER TABLE session_event_counts RENAME TO session_event_parts;
  ALTER TABLE session_event_parts DROP CONSTRAINT session_event_counts_pkey,
    ADD part BIGINT NOT NULL DEFAULT 0, ADD PRIMARY KEY (session_key, part);
  CREATE VIEW session_event_counts AS
    SELECT session_key, CAST(sum(n) AS BIGINT) AS n FROM session_event_parts GROUP BY session_key;
  DO $$ DECLARE reader TEXT; BEGIN -- who may read the table that had its name goes on reading
    FOR reader IN SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END
      FROM pg_class, aclexplode(relacl)
      WHERE oid = 'session_event_parts'::regclass AND privilege_type = 'SELECT' AND grantee <> relowner
    LOOP EXECUTE 'GRANT SELECT ON session_event_counts TO ' || reader; END LOOP;
  END $$;
  CREATE OR REPLACE FUNCTION session_events_count() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE sign BIGINT := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
  BEGIN
    INSERT INTO session_event_parts AS parts (session_key, part, n)
      SELECT session_key, pg_backend_pid() % 16, sign * count(*) FROM changed GROUP BY session_key
      ON CONFLICT (session_key, part) DO UPDATE SET n = parts.n + excluded.n;
    IF sign < 0 THEN
      DELETE FROM session_event_parts AS gone WHERE session_key IN (SELECT session_key FROM changed)
        AND (SELECT sum(n) FROM session_event_parts AS parts WHERE parts.session_key = gone.session_key) = 0;
    END IF;
    RETURN NULL;
  END $$;
`;

export const agentMigrations: readonly Migration[] = [
  { name: "agent: sessions", sql: inPostgres(SESSIONS) },
  { name: "agent: events", sql: inPostgres(EVENTS + EVENT_COUNTS) + COUNTED },
  { name: "agent: events counted by connections", sql: COUNTED_BY_CONNECTIONS },
];
