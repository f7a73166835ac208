/** The nodes of the database, and the leases that each holds. Times are epoch milliseconds on the database's clock. */
import type { Migration } from "../database.ts";
import type { NodeStatus, Spent } from "../peers.ts";
import { execute, queryAll, queryOne, type Transaction } from "../store.ts";

const NODES = `
  CREATE TABLE nodes (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,  -- of one life of a node; never given again
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    digest TEXT NOT NULL,            -- of its configuration
    digest_at BIGINT NOT NULL,       -- since when
    started_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL
  );
  CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    node BIGINT NOT NULL,
    generation BIGINT NOT NULL,      -- how often it went to another node
    since BIGINT NOT NULL,
    until BIGINT NOT NULL
  );
`;

const RATES = `
  CREATE TABLE rate_buckets (
    id TEXT PRIMARY KEY,
    tokens DOUBLE PRECISION NOT NULL,  -- less than none: nodes took too many
    at BIGINT NOT NULL
  );
`;

const PAUSES = `
  CREATE TABLE pauses (
    is_one BOOLEAN PRIMARY KEY DEFAULT true CHECK (is_one),
    since BIGINT NOT NULL
  );
`;

export const clusterMigrations: readonly Migration[] = [
  { name: "cluster", sql: NODES },
  { name: "cluster: rates", sql: RATES },
  { name: "cluster: pauses", sql: PAUSES },
];

/** A node's description of itself. */
export interface NodeFacts {
  readonly name: string;
  readonly version: string;
  readonly digest: string;
}

export function* databaseNow(): Transaction<number> {
  const text = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) AS now";
  return (yield* queryOne<{ now: number }>(text))!.now;
}

/** Adds a node; returns its number. */
export function* enterNode({ name, version, digest }: NodeFacts, now: number): Transaction<number> {
  const row = yield* queryOne<{ number: number }>(
    `INSERT INTO nodes (name, version, digest, digest_at, started_at, seen_at) VALUES ($1, $2, $3, $4, $4, $4)
     RETURNING number`,
    name,
    version,
    digest,
    now,
  );
  return row!.number;
}

/** Updates a node's last-seen time; false if it has been removed. */
export function* seeNode(number: number, digest: string, now: number): Transaction<boolean> {
  const text = `UPDATE nodes SET seen_at = $1, digest = $2, digest_at = CASE WHEN digest = $2 THEN digest_at ELSE $1 END
    WHERE number = $3`;
  return (yield* execute(text, now, digest, number)) > 0;
}

/** Removes a node and its leases. False: it was removed already. */
export function* removeNode(number: number): Transaction<boolean> {
  yield* execute("DELETE FROM leases WHERE node = $1", number);
  return (yield* execute("DELETE FROM nodes WHERE number = $1", number)) > 0;
}

/** Removes the nodes whose locks are still free. */
export function* removeFree(numbers: readonly number[], space: string): Transaction<number[]> {
  const rows = yield* queryAll<{ number: number; isFree: boolean }>(FREE_LOCKS, space);
  const free = new Set(rows.flatMap(({ number, isFree }) => (isFree ? number : [])));
  const removed: number[] = [];
  for (const number of numbers) if (free.has(number) && (yield* removeNode(number))) removed.push(number);
  return removed;
}

/** Locks with two keys; `pg_locks` shows them as unsigned. */
export const FREE_LOCKS = `
  WITH locks AS MATERIALIZED (
    SELECT objid FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted
      AND classid = hashtext($1)::oid
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  )
  SELECT number, NOT EXISTS (SELECT 1 FROM locks WHERE objid = number::int::oid) AS "isFree" FROM nodes`;

/** Nodes not seen since then. */
export function* silentNodes(since: number): Transaction<number[]> {
  const rows = yield* queryAll<{ number: number }>("SELECT number FROM nodes WHERE seen_at < $1", since);
  return rows.map(({ number }) => number);
}

export function* nodeNumbers(): Transaction<Set<number>> {
  const rows = yield* queryAll<{ number: number }>("SELECT number FROM nodes");
  return new Set(rows.map(({ number }) => number));
}

/**
 * Extends a node's leases until then, and takes free ones; returns the names that it holds now.
 * @param overAt leases of others that ended before then are free
 */
export function* takeLeases(
  names: readonly string[],
  { node, now, overAt, until }: { node: number; now: number; overAt: number; until: number },
): Transaction<string[]> {
  const taken: string[] = [];
  for (const name of names) {
    const changed = yield* execute(
      `INSERT INTO leases (name, node, generation, since, until) VALUES ($1, $2, 1, $3, $4)
       ON CONFLICT (name) DO UPDATE SET node = excluded.node, until = excluded.until,
         generation = leases.generation + CASE WHEN leases.node = excluded.node THEN 0 ELSE 1 END,
         since = CASE WHEN leases.node = excluded.node THEN leases.since ELSE excluded.since END
       WHERE leases.node = excluded.node OR leases.until <= $5`,
      name,
      node,
      now,
      until,
      overAt,
    );
    if (changed > 0) taken.push(name);
  }
  return taken;
}

export function* holdsLease(name: string, node: number): Transaction<boolean> {
  return (yield* queryOne("SELECT 1 FROM leases WHERE name = $1 AND node = $2", name, node)) !== undefined;
}

/** The oldest first. */
export function* listNodes(): Transaction<NodeStatus[]> {
  const nodes = yield* queryAll<Omit<NodeStatus, "leads">>(
    `SELECT number, name, version, digest, digest_at AS "digestAt", started_at AS "startedAt", seen_at AS "seenAt"
     FROM nodes ORDER BY number`,
  );
  const leases = yield* queryAll<{ name: string; node: number }>("SELECT name, node FROM leases ORDER BY name");
  return nodes.map((node) => ({
    ...node,
    leads: leases.flatMap(({ name, node: number }) => (number === node.number ? [name] : [])),
  }));
}

/** A bucket unused for this long is full, or belongs to a former configuration. */
const BUCKET_MS = 24 * 3_600_000;

/** Returns the tokens left in each. */
export function* spendTokens(spent: readonly Spent[], now: number): Transaction<number[]> {
  const left: number[] = [];
  for (const { id, taken, burst, perMs } of spent) {
    const row = yield* queryOne<{ tokens: number }>(
      `INSERT INTO rate_buckets AS bucket (id, tokens, at) VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE
       SET tokens = least($4, bucket.tokens + greatest($3 - bucket.at, 0) * $5) - $6, at = $3 RETURNING tokens`,
      id,
      burst - taken,
      now,
      burst,
      perMs,
      taken,
    );
    left.push(row!.tokens);
  }
  yield* execute("DELETE FROM rate_buckets WHERE at < $1", now - BUCKET_MS);
  return left;
}
