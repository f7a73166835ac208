/**
 * A store in PostgreSQL. Writes go through one connection, one after the other, as they do in SQLite: what comes in
 * while a commit is on its way shares the next, each script with a savepoint of its own. Where several processes share
 * the schema their transactions are serial too, by a lock that each has from its beginning to its end: every statement
 * of a script sees what the others committed before, and nothing changes between its statements. Reads have
 * connections of their own, and see what is committed.
 */
import type { ReservedSQL, SQL } from "bun";
import type { Migration } from "../database.ts";
import type { AppError } from "../errors.ts";
import type { Script, Store } from "../store.ts";
import { migrate } from "./migrate.ts";
import { isOfServer, isRepeatable, problemOf } from "./problems.ts";
import { checkServer, makePool, type ServerOptions } from "./server.ts";
import { runScript } from "./statements.ts";

/** Scripts that share a commit: a longer transaction would delay the answers of those at its beginning. */
const BATCH_MAX = 64;
const TRIES = 5;
/** No try begins later. */
const TRIES_MS = 5000;
const TRY_AGAIN_MS = 20;
/** First of the two numbers of the lock that a transaction which writes has; the other is its schema's. */
const WRITE_LOCK = 7_205_102;

interface Pending {
  readonly script: () => Script<unknown>;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

type Ended = { readonly result: unknown } | { readonly error: unknown };

/** Throws `storage` with one line where the server cannot be used, `bad_request` for an address that is none. */
export async function openPostgres(options: ServerOptions, migrations: readonly Migration[]): Promise<PostgresStore> {
  const sql = makePool(options);
  try {
    await checkServer(sql);
    await migrate(sql, options.schema, migrations);
    return new PostgresStore(sql, options.schema);
  } catch (error) {
    await sql.close({ timeout: 0 });
    throw error;
  }
}

class PostgresStore implements Store {
  readonly #sql: SQL;
  readonly #begin: string;
  #pending: Pending[] = [];
  #writing: Promise<void> | undefined;
  #connection: ReservedSQL | undefined;
  #failure: AppError | undefined;

  constructor(sql: SQL, schema: string) {
    this.#sql = sql;
    const lock = `SELECT pg_advisory_xact_lock(${WRITE_LOCK}, ${Bun.hash.crc32(schema) | 0})`;
    this.#begin = `BEGIN; ${lock}; SAVEPOINT piece`;
  }

  write<T>(script: () => Script<T>): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    this.#pending.push({ script, resolve: (result) => resolve(result as T), reject });
    this.#writing ??= this.#writeAll();
    return promise;
  }

  async read<T>(script: () => Script<T>): Promise<T> {
    try {
      return await runScript(this.#sql, script());
    } catch (error) {
      throw isOfServer(error) ? problemOf(error) : error;
    }
  }

  get failure(): AppError | undefined {
    return this.#failure;
  }

  async close(): Promise<void> {
    await this.#writing;
    this.#connection?.release();
    await this.#sql.close();
  }

  async #writeAll(): Promise<void> {
    while (this.#pending.length > 0) {
      const batch = this.#pending.splice(0, BATCH_MAX);
      await this.#write(batch);
    }
    this.#writing = undefined;
  }

  async #write(batch: readonly Pending[]): Promise<void> {
    try {
      const ends = await this.#commit(batch);
      this.#failure = undefined;
      for (const [i, end] of ends.entries()) {
        if ("error" in end) batch[i]!.reject(end.error);
        else batch[i]!.resolve(end.result);
      }
    } catch (error) {
      this.#failure = problemOf(error);
      for (const { reject } of batch) reject(this.#failure);
    }
  }

  /** Tries again where the server says that this may help; a connection that broke gives way to a new one. */
  async #commit(batch: readonly Pending[]): Promise<readonly Ended[]> {
    const until = Date.now() + TRIES_MS;
    for (let tries = 1; ; tries++) {
      const progress = { isCommitting: false };
      try {
        this.#connection ??= await this.#sql.reserve();
        return await this.#transact(this.#connection, batch, progress);
      } catch (error) {
        await this.#renew();
        // of a commit whose answer did not come, nobody knows whether it was made
        const isWorthIt = isRepeatable(error) || (isOfServer(error) && !progress.isCommitting);
        if (!isWorthIt || tries === TRIES || Date.now() > until) throw error;
        await Bun.sleep(TRY_AGAIN_MS * 2 ** tries * (0.5 + Math.random()));
      }
    }
  }

  /** Ends the transaction that failed; where that fails too, the next one gets another connection. */
  async #renew(): Promise<void> {
    const connection = this.#connection;
    try {
      await connection?.unsafe("ROLLBACK");
    } catch {
      this.#connection = undefined;
      connection?.release();
    }
  }

  /** All scripts in one transaction. A script that throws undoes itself alone. */
  async #transact(
    connection: ReservedSQL,
    batch: readonly Pending[],
    progress: { isCommitting: boolean },
  ): Promise<readonly Ended[]> {
    const ends: Ended[] = [];
    await connection.unsafe(this.#begin).simple();
    for (const { script } of batch) {
      try {
        ends.push({ result: await runScript(connection, script()) });
        if (ends.length < batch.length) await connection.unsafe("RELEASE SAVEPOINT piece; SAVEPOINT piece").simple();
      } catch (error) {
        if (isOfServer(error) || isRepeatable(error)) throw error;
        ends.push({ error });
        await connection.unsafe("ROLLBACK TO SAVEPOINT piece");
      }
    }
    progress.isCommitting = true;
    await connection.unsafe("COMMIT");
    return ends;
  }
}

export type { PostgresStore };
