/**
 * A PostgreSQL server that meets the gateway's demands: reachable, writable, durable, and one session per connection.
 */
import { existsSync } from "node:fs";
import { SQL } from "bun";
import { AppError } from "../../../base/index.ts";
import { addressProblem, filesOf, parsePostgresAddress } from "../database-address.ts";
import { Connection, STATEMENT_SECONDS } from "./connection.ts";
import { problemOf, RETRY_MS } from "./problems.ts";

export interface ServerOptions {
  /** See `database-address.ts`. */
  readonly url: string;
  /** Schema of the tables; created if missing. */
  readonly schema: string;
  readonly connections: number;
  /** Our application_name in the server's lists. */
  readonly name: string;
}

const VERSION_MIN = 140_000;
/** Other encodings lack some characters. `SQL_ASCII` keeps bytes unchanged. */
const ENCODINGS: readonly string[] = ["UTF8", "SQL_ASCII"];
const CONNECT_SECONDS = 5;
/** Time limits of a statement, a lock, and an idle transaction; the wait for a lock exceeds the time one is held. */
const TIMEOUTS = {
  statement_timeout: `${STATEMENT_SECONDS}s`,
  lock_timeout: "5s",
  idle_in_transaction_session_timeout: "4s",
};
/**
 * When the server drops a session with a silent client, and its locks: not before the client has given up itself (see
 * `cluster.ts`). The server's default is hours.
 */
const SILENCE = {
  tcp_keepalives_idle: "10",
  tcp_keepalives_interval: "5",
  tcp_keepalives_count: "3",
  tcp_user_timeout: "25000",
};

/** A plan cached while a table was small would later scan all of it. */
const PLANS = { plan_cache_mode: "force_custom_plan" };

/**
 * A statement that sets how the session plans, if its transaction commits. Cached plans are used for statements that
 * find rows by an index; a table without a usable index is still read completely. JIT is off: compiling takes longer
 * than any of our statements, and one setting that makes a plan look expensive triggers it.
 */
export function planStatement(areKept: boolean): string {
  const settings = {
    plan_cache_mode: areKept ? "force_generic_plan" : PLANS.plan_cache_mode,
    enable_seqscan: areKept ? "off" : "on",
    jit: "off",
  };
  const parts = Object.entries(settings).map(([name, value]) => `set_config('${name}', '${value}', false)`);
  return `SELECT ${parts.join(", ")}`;
}

/**
 * A pool that connects on first use. Throws `bad_request` if the address is invalid or a file in it is missing.
 * @param onClose called whenever a connection has ended, or could not be made
 */
export function makePool(
  { url, schema, connections, name }: ServerOptions,
  { onClose }: { onClose?: () => void } = {},
): SQL {
  const problem = addressProblem(url) ?? fileProblem(url);
  if (problem !== undefined) throw new AppError("bad_request", `database.url: ${problem}`);
  return new SQL({
    ...parsePostgresAddress(url)!,
    adapter: "postgres",
    max: connections,
    bigint: true,
    connectionTimeout: CONNECT_SECONDS,
    idleTimeout: 0,
    ...(onClose && { onclose: onClose }),
    connection: { ...TIMEOUTS, ...SILENCE, ...PLANS, search_path: quoted(schema), application_name: name },
  });
}

/** Names the unreadable file; the driver does not. */
function fileProblem(url: string): string | undefined {
  const [missing] = filesOf(url).filter(([, path]) => !existsSync(path));
  return missing && `${missing[0]}: expected a file, but '${missing[1]}' does not exist`;
}

/** Quotes any name as an SQL identifier. */
export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** Throws `storage` with one line for a server that cannot keep the gateway's guarantees. */
export async function checkServer(sql: SQL, schema: string): Promise<void> {
  try {
    const [row] = await sql.unsafe(
      `SELECT current_setting('server_version_num')::int AS version, current_setting('server_version') AS called,
         current_setting('search_path') AS path, current_setting('lock_timeout') AS "lockTimeout",
         current_setting('server_encoding') AS encoding`,
    );
    const { version, called, path, lockTimeout, encoding } = row as Record<string, string> & { version: number };
    if (version < VERSION_MIN) throw unfit(`PostgreSQL 14 or later, got ${called}`);
    if (!ENCODINGS.includes(encoding!)) throw unfit(`a database of encoding UTF8, got ${encoding}`);
    await checkSessions(sql);
    if (path !== quoted(schema) && path !== schema)
      throw unfit(`search_path to be ${quoted(schema)}, got ${path}: ${KEPT}`);
    if (lockTimeout !== TIMEOUTS.lock_timeout) {
      throw unfit(`lock_timeout to be ${TIMEOUTS.lock_timeout}, got ${lockTimeout}: ${KEPT}`);
    }
    await checkWritable(sql);
  } catch (error) {
    throw problemOf(error);
  }
}

/** Error for a pooler that ignores the settings of a connection. */
const KEPT = "the settings of a connection must reach the server";

/** Throws `storage` if the server does not answer, or if writes are refused or not durable. */
export async function checkWritable(sql: SQL): Promise<void> {
  const connection = await Connection.open(sql);
  try {
    const [row] = await connection.query(
      "SELECT current_setting('transaction_read_only') AS readonly, current_setting('synchronous_commit') AS durable",
    );
    const { readonly, durable } = row as Record<string, string>;
    if (readonly === "on" || durable === "off") connection.spend();
    if (readonly === "on") throw unfit("a database that can be written, got one that is read-only");
    checkDurable(durable!);
  } finally {
    connection.release();
  }
}

/** Throws `storage` if commits are answered before they are on the disk. */
export function checkDurable(synchronousCommit: string): void {
  if (synchronousCommit !== "off") return;
  throw unfit("synchronous_commit to be on, got off: what is accepted could be lost");
}

const unfit = (expected: string): AppError =>
  new AppError("storage", `the database does not fit: expected ${expected}`, { retryAfterMs: RETRY_MS });

/** Behind a pooler in transaction mode, two connections can share a session. */
async function checkSessions(sql: SQL): Promise<void> {
  const [first, second] = [await Connection.open(sql), await Connection.open(sql)];
  try {
    const before = await sessionOf(first);
    await second.query("BEGIN");
    const other = await sessionOf(second);
    const after = await sessionOf(first);
    await second.query("ROLLBACK");
    if (before === other || before !== after) {
      throw unfit("a session for each connection, got a pooler in transaction mode: use session mode");
    }
  } finally {
    first.release();
    second.release();
  }
}

async function sessionOf(connection: Connection): Promise<number> {
  const [row] = await connection.query("SELECT pg_backend_pid() AS pid");
  return Number(row!["pid"]);
}
