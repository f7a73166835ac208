/**
 * A store in PostgreSQL. All writes go through one connection, in sequence, as in SQLite. Processes that share
 * the schema run their transactions serially too: each holds a lock from beginning to end, so every statement of a
 * transaction sees all earlier commits, and nothing changes between its statements. Reads have
 * separate connections, and see committed data.
 */
import type { SQL } from "bun";
import { placeOf } from "../database-address.ts";
import type { Migration, OnMigrated } from "../database.ts";
import type { AppError } from "../../../base/index.ts";
import type { Transaction, Store } from "../store.ts";
import { migrate } from "./migrate.ts";
import { Connection } from "./connection.ts";
import { isOfServer, isRepeatable, problemOf, startProblem } from "./problems.ts";
import { checkServer, checkWritable, makePool, type ServerOptions } from "./server.ts";
import { runTransaction } from "./statements.ts";
import { writeLockOf } from "./write-lock.ts";
import { NAME_LIFE, PostgresWriter, writerMigrations, type Pending } from "./writer.ts";

/** Throws `storage` with one line if the server is unusable, `bad_request` for an invalid address. */
export async function openPostgres(
  options: ServerOptions,
  migrations: readonly Migration[],
  onMigrated?: OnMigrated,
): Promise<PostgresStore> {
  const sql = makePool(options);
  try {
    await checkServer(sql, options.schema);
    const names = await migrate(sql, options.schema, [...writerMigrations, ...migrations]);
    if (names.length > 0) onMigrated?.(names);
    await sql.unsafe(NAME_LIFE);
    return new PostgresStore(sql, options.schema);
  } catch (error) {
    await sql.close({ timeout: 0 });
    throw startProblem(error, placeOf(options.url));
  }
}

class PostgresStore implements Store {
  readonly #sql: SQL;
  readonly #writer: PostgresWriter;

  constructor(sql: SQL, schema: string) {
    this.#sql = sql;
    this.#writer = new PostgresWriter(sql, writeLockOf(schema));
  }

  write<T>(transaction: () => Transaction<T>): Promise<T> {
    const alone = function* (): Transaction<readonly T[]> {
      return [yield* transaction()];
    };
    return this.#write(alone, undefined, { keepsPlans: false });
  }

  writeEach<I, O>(transaction: (inputs: readonly I[]) => Transaction<readonly O[]>, input: I): Promise<O> {
    return this.#write(transaction, input, { keepsPlans: true });
  }

  #write<I, O>(
    transaction: (inputs: readonly I[]) => Transaction<readonly O[]>,
    input: I,
    { keepsPlans }: Pick<Pending, "keepsPlans">,
  ): Promise<O> {
    const { promise, resolve, reject } = Promise.withResolvers<O>();
    this.#writer.add({
      transaction: transaction as Pending["transaction"],
      input,
      keepsPlans,
      resolve: resolve as Pending["resolve"],
      reject,
    });
    return promise;
  }

  async read<T>(transaction: () => Transaction<T>): Promise<T> {
    const connection = await Connection.open(this.#sql).catch((error: unknown) => {
      throw problemOf(error); // includes refused connections and certificate errors
    });
    try {
      return await runTransaction(connection, transaction());
    } catch (error) {
      throw isOfServer(error) || isRepeatable(error) ? problemOf(error) : error;
    } finally {
      connection.release();
    }
  }

  /** Rejects with `storage` if the server is down, read-only, or not durable. */
  async check(): Promise<void> {
    await checkWritable(this.#sql).catch((error: unknown) => {
      throw problemOf(error);
    });
  }

  get failure(): AppError | undefined {
    return this.#writer.failure;
  }

  async close(): Promise<void> {
    await this.#writer.close();
    await this.#sql.close();
  }
}

export type { PostgresStore };
