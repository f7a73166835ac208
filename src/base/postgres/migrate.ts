/** Brings the tables of a PostgreSQL schema up to date, one process at a time. */
import type { SQL } from "bun";
import type { Migration } from "../database.ts";
import { problemOf } from "./problems.ts";
import { quoted } from "./server.ts";

/** For `pg_advisory_xact_lock`: any number that nobody else takes. */
const MIGRATION_LOCK = 7_205_101;

/** All steps that the schema has not seen, or none. Throws `storage`. */
export async function migrate(sql: SQL, schema: string, migrations: readonly Migration[]): Promise<void> {
  try {
    await sql.begin(async (transaction) => {
      await transaction.unsafe("SELECT pg_advisory_xact_lock($1)", [MIGRATION_LOCK]);
      const [found] = await transaction.unsafe("SELECT 1 FROM pg_namespace WHERE nspname = $1", [schema]);
      if (!found) await transaction.unsafe(`CREATE SCHEMA ${quoted(schema)}`);
      await transaction.unsafe("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY)");
      const seen = new Set<unknown>();
      for (const row of await transaction.unsafe("SELECT name FROM migrations"))
        seen.add((row as { name: string }).name);
      for (const { name, sql: text } of migrations.filter((migration) => !seen.has(migration.name))) {
        await transaction.unsafe(text).simple();
        await transaction.unsafe("INSERT INTO migrations (name) VALUES ($1)", [name]);
      }
    });
  } catch (error) {
    throw problemOf(error);
  }
}
