/** A PostgreSQL server as the gateway needs it: reachable, writable, durable, and a session for each connection. */
import { existsSync } from "node:fs";
import { SQL } from "bun";
import { AppError } from "../../../base/index.ts";
import { addressProblem, filesOf, parsePostgresAddress } from "../database-address.ts";
import { Line, STATEMENT_SECONDS } from "./line.ts";
import { problemOf, RETRY_MS } from "./problems.ts";

export interface ServerOptions {
  /** See `database-address.ts`. */
  readonly url: string;
  /** Where the tables are; made where it is not there. */
  readonly schema: string;
  readonly connections: number;
  /** What the server's own lists call us. */
  readonly name: string;
}

const VERSION_MIN = 140_000;
/** Others have no place for some characters. `SQL_ASCII` keeps bytes as they come. */
const ENCODINGS: readonly string[] = ["UTF8", "SQL_ASCII"];
const CONNECT_SECONDS = 5;
/** What a statement, a lock and a script that does not go on may take; a lock is waited for longer than one is kept. */
const TIMEOUTS = {
  statement_timeout: `${STATEMENT_SECONDS}s`,
  lock_timeout: "5s",
  idle_in_transaction_session_timeout: "4s",
};
/**
 * When the server gives up a session whose client says nothing, with the locks that it holds: not before the client has
 * given up itself (see `cluster.ts`). By itself it would wait for hours.
 */
const SILENCE = {
  tcp_keepalives_idle: "10",
  tcp_keepalives_interval: "5",
  tcp_keepalives_count: "3",
  tcp_user_timeout: "25000",
};

/** A plan that was made while a table was small, and kept, would read all of it once it is large. */
const PLANS = { plan_cache_mode: "force_custom_plan" };

/**
 * Says how a session plans from now on, if the transaction that says it is committed. Kept are plans of statements that
 * find all that they read by an index: a table that has none to offer is read as before. None is compiled, which takes
 * longer than any of them, and happens as soon as a setting makes a plan look expensive.
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
 * A pool that connects when it is first used. Throws `bad_request` for an address that is none, or names no file.
 * @param onClose is called whenever a connection is gone, or could not be made
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

/** The driver says only that some file cannot be had. */
function fileProblem(url: string): string | undefined {
  const [missing] = filesOf(url).filter(([, path]) => !existsSync(path));
  return missing && `${missing[0]}: expected a file, there is none at '${missing[1]}'`;
}

/** A name as SQL takes it, whatever is in it. */
export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** Throws `storage` with one line for a server that cannot keep what the gateway promises. */
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

/** What a pooler does that ignores them. */
const KEPT = "what a connection asks for at its beginning has to reach the server";

/** Throws `storage` where the server does not answer, or what is written now is refused or not durable. */
export async function checkWritable(sql: SQL): Promise<void> {
  const line = await Line.open(sql);
  try {
    const [row] = await line.query(
      "SELECT current_setting('transaction_read_only') AS readonly, current_setting('synchronous_commit') AS durable",
    );
    const { readonly, durable } = row as Record<string, string>;
    if (readonly === "on" || durable === "off") line.spend();
    if (readonly === "on") throw unfit("a database that can be written, got one that is read-only");
    checkDurable(durable!);
  } finally {
    line.release();
  }
}

/** Throws `storage` where a commit is answered before it is on the disk. */
export function checkDurable(synchronousCommit: string): void {
  if (synchronousCommit !== "off") return;
  throw unfit("synchronous_commit to be on, got off: what is accepted could be lost");
}

const unfit = (expected: string): AppError =>
  new AppError("storage", `the database does not fit: expected ${expected}`, { retryAfterMs: RETRY_MS });

/** Behind a pooler that lends a server's session for one transaction, two connections can be the same session. */
async function checkSessions(sql: SQL): Promise<void> {
  const [first, second] = [await Line.open(sql), await Line.open(sql)];
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

async function sessionOf(line: Line): Promise<number> {
  const [row] = await line.query("SELECT pg_backend_pid() AS pid");
  return Number(row!["pid"]);
}
