/** Migrates the tables of a PostgreSQL schema, one process at a time. */
import type { SQL } from "bun";
import type { Migration } from "../database.ts";
import { AppError } from "../../../base/index.ts";
import { problemOf } from "./problems.ts";
import { quoted } from "./server.ts";
import { writeLockOf } from "./write-lock.ts";

/** SQLSTATE insufficient_privilege. */
const MAY_NOT = "42501";
/** Key of `pg_advisory_xact_lock`: arbitrary, unique to us. */
const MIGRATION_LOCK = 7_205_101;

/**
 * Runs all steps that the schema has not seen, or none. Returns the names of the steps that ran on tables that existed
 * already. Throws `storage`.
 */
export async function migrate(sql: SQL, schema: string, migrations: readonly Migration[]): Promise<string[]> {
  try {
    return await sql.begin(async (transaction) => {
      await transaction.unsafe("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0").simple();
      // waits while another process migrates
      await transaction.unsafe("SELECT pg_advisory_xact_lock($1)", [MIGRATION_LOCK]);
      await transaction.unsafe("SET LOCAL lock_timeout = '5s'"); // waiting for a table's lock blocks its other users
      const [found] = await transaction.unsafe("SELECT 1 FROM pg_namespace WHERE nspname = $1", [schema]);
      if (!found) await transaction.unsafe(`CREATE SCHEMA ${quoted(schema)}`);
      // checked first: a role without CREATE may not say IF NOT EXISTS either
      const [table] = await transaction.unsafe("SELECT to_regclass('migrations') AS found");
      if (!(table as { found: unknown }).found) {
        await transaction.unsafe("CREATE TABLE migrations (name TEXT PRIMARY KEY)");
      }
      const seen = new Set<unknown>();
      for (const row of await transaction.unsafe("SELECT name FROM migrations"))
        seen.add((row as { name: string }).name);
      const steps = migrations.filter((migration) => !seen.has(migration.name));
      // nodes of the previous version write meanwhile: without this lock, their tables and ours could deadlock
      if (found && steps.length > 0) await transaction.unsafe(`SELECT ${writeLockOf(schema)}`);
      for (const { name, sql: text } of steps) {
        await transaction.unsafe(text).simple();
        await transaction.unsafe("INSERT INTO migrations (name) VALUES ($1)", [name]);
      }
      return seen.size === 0 ? [] : steps.map(({ name }) => name);
    });
  } catch (error) {
    const problem = problemOf(error);
    if ((error as { errno?: unknown }).errno !== MAY_NOT) throw problem;
    const advice = "run 'hearth migrate' as a role that may make tables";
    throw new AppError("storage", `${problem.message}: ${advice}`, { cause: error });
  }
}
