/** The pause of all turns in the database: the table has a row, or none. */
import type { Migration } from "./database.ts";
import { execute, queryOne, type Transaction } from "./store.ts";

/** For SQLite; PostgreSQL nodes have the table among their own. */
export const pauseMigrations: readonly Migration[] = [
  {
    name: "pauses",
    sql: `
      CREATE TABLE pauses (
        is_one INTEGER PRIMARY KEY DEFAULT 1 CHECK (is_one = 1),
        since INTEGER NOT NULL
      ) STRICT, WITHOUT ROWID;
    `,
  },
];

export function* isPaused(): Transaction<boolean> {
  return (yield* queryOne("SELECT 1 FROM pauses")) !== undefined;
}

/** @param now epoch milliseconds; an earlier start stays */
export const beginPause = (now: number): Transaction<number> =>
  execute("INSERT INTO pauses (since) VALUES ($1) ON CONFLICT DO NOTHING", now);

export const endPause = (): Transaction<number> => execute("DELETE FROM pauses");
