/** A PostgreSQL server as the gateway needs it: reachable, writable, durable, and a session for each connection. */
import { SQL, type ReservedSQL } from "bun";
import { AppError } from "../errors.ts";
import { problemOf } from "./problems.ts";

export interface ServerOptions {
  /** `postgres://user:password@host:port/database`; a socket's folder as `?host=/run/postgresql`. */
  readonly url: string;
  /** Where the tables are; made where it is not there. */
  readonly schema: string;
  readonly connections: number;
  /** What the server's own lists call us. */
  readonly name: string;
}

const VERSION_MIN = 140_000;
const CONNECT_SECONDS = 5;
/** What a statement, a lock and a script that does not go on may take; a lock is waited for longer than one is kept. */
const TIMEOUTS = { statement_timeout: "10s", lock_timeout: "5s", idle_in_transaction_session_timeout: "4s" };

/** A plan that was made while a table was small, and kept, would read all of it once it is large. */
const PLANS = { plan_cache_mode: "force_custom_plan" };

/** A pool that connects when it is first used. Throws `bad_request` for an address that is none. */
export function makePool({ url, schema, connections, name }: ServerOptions): SQL {
  return new SQL({
    ...addressOf(url),
    adapter: "postgres",
    max: connections,
    bigint: true,
    connectionTimeout: CONNECT_SECONDS,
    idleTimeout: 0,
    connection: { ...TIMEOUTS, ...PLANS, search_path: quoted(schema), application_name: name },
  });
}

/** Bun's client takes the path of a socket, not its folder. */
function addressOf(
  url: string,
): { url: string } | { path: string; username: string; password: string; database: string } {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (!parsed || !/^postgres(ql)?:$/.test(parsed.protocol)) {
    throw new AppError("bad_request", "database.url: expected postgres://user:password@host:port/database");
  }
  const folder = parsed.searchParams.get("host");
  if (folder === null) return { url };
  const { username, password, pathname, port } = parsed;
  return {
    path: `${folder}/.s.PGSQL.${port || "5432"}`,
    username: decodeURIComponent(username),
    password: decodeURIComponent(password),
    database: decodeURIComponent(pathname.slice(1)),
  };
}

/** A name as SQL takes it, whatever is in it. */
export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** Throws `storage` with one line for a server that cannot keep what the gateway promises. */
export async function checkServer(sql: SQL): Promise<void> {
  try {
    const [row] = await sql.unsafe(
      `SELECT current_setting('server_version_num')::int AS version, current_setting('server_version') AS called,
         current_setting('transaction_read_only') AS readonly, current_setting('synchronous_commit') AS durable`,
    );
    const { version, called, readonly, durable } = row as Record<string, string> & { version: number };
    if (version < VERSION_MIN) throw unfit(`PostgreSQL 14 or later, got ${called}`);
    if (readonly === "on") throw unfit("a database that can be written, got one that is read-only");
    checkDurable(durable!);
    await checkSessions(sql);
  } catch (error) {
    throw problemOf(error);
  }
}

/** Throws `storage` where a commit is answered before it is on the disk. */
export function checkDurable(synchronousCommit: string): void {
  if (synchronousCommit !== "off") return;
  throw unfit("synchronous_commit to be on, got off: what is accepted could be lost");
}

const unfit = (expected: string): AppError =>
  new AppError("storage", `the database does not fit: expected ${expected}`);

/** Behind a pooler that lends a server's session for one transaction, two connections can be the same session. */
async function checkSessions(sql: SQL): Promise<void> {
  const [first, second] = [await sql.reserve(), await sql.reserve()];
  try {
    const before = await sessionOf(first);
    await second.unsafe("BEGIN");
    const other = await sessionOf(second);
    const after = await sessionOf(first);
    await second.unsafe("ROLLBACK");
    if (before === other || before !== after) {
      throw unfit("a session for each connection, got a pooler in transaction mode: use session mode");
    }
  } finally {
    first.release();
    second.release();
  }
}

async function sessionOf(connection: ReservedSQL): Promise<number> {
  const [row] = await connection.unsafe("SELECT pg_backend_pid() AS pid");
  return Number((row as { pid: unknown }).pid);
}
