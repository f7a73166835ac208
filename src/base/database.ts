/**
 * SQLite files that survive a kill: opened with a write-ahead log and full syncs, brought up to date by migrations, and
 * written through one group commit, so that a thousand small durable writes cost a few syncs.
 */
import { Database } from "bun:sqlite";
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { AppError, messageOf } from "./errors.ts";

export type { Database } from "bun:sqlite";

/** A step from one shape of the tables to the next. Names are for ever: a step that has run is not run again. */
export interface Migration {
  readonly name: string;
  readonly sql: string;
}

/**
 * Opens a database, making it where there is none, and runs the migrations that it has not seen.
 * Throws `storage` where the file cannot be opened or is no database.
 */
export function openDatabase(path: string, migrations: readonly Migration[]): Database {
  try {
    if (path !== ":memory:") mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const db = new Database(path, { create: true, strict: true });
    // full: a commit is on the disk before anyone hears of it
    db.run(
      "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA busy_timeout = 5000",
    );
    db.transaction(migrate).immediate(db, migrations);
    return db;
  } catch (error) {
    throw new AppError("storage", `cannot open the database '${path}': ${messageOf(error)}`, { cause: error });
  }
}

function migrate(db: Database, migrations: readonly Migration[]): void {
  db.run("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY) STRICT");
  const seen = new Set(
    db
      .query<{ name: string }, []>("SELECT name FROM migrations")
      .all()
      .map((row) => row.name),
  );
  for (const { name, sql } of migrations.filter((migration) => !seen.has(migration.name))) {
    db.run(sql);
    db.run("INSERT INTO migrations (name) VALUES (?)", [name]);
  }
}

interface Pending {
  readonly run: () => void;
  readonly settle: () => void;
  readonly fail: (error: unknown) => void;
}

/**
 * Runs pieces of work inside shared transactions. A piece that throws undoes itself alone; the others of its commit
 * stand. Work is synchronous: nothing else runs between its first statement and its last.
 */
export class Writer {
  readonly #db: Database;
  #pending: Pending[] = [];

  constructor(db: Database) {
    this.#db = db;
  }

  /** Resolves with the work's result once it is on the disk. Rejects with what the work threw, or `storage`. */
  write<T>(work: (db: Database) => T): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    let result: T;
    const savepoint = this.#db.transaction(() => {
      result = work(this.#db);
    });
    if (this.#pending.length === 0) setTimeout(() => this.#commit(), 0);
    this.#pending.push({ run: savepoint, settle: () => resolve(result), fail: reject });
    return promise;
  }

  /**
   * One transaction for all that came in since the last; nested transactions are savepoints. It takes the right to
   * write at its beginning, and waits for it there: one that finds out later that another has it can only fail.
   */
  #commit(): void {
    const batch = this.#pending;
    this.#pending = [];
    const failures = new Map<Pending, unknown>();
    try {
      this.#db
        .transaction(() => {
          for (const piece of batch) {
            try {
              piece.run();
            } catch (error) {
              failures.set(piece, error);
            }
          }
        })
        .immediate();
    } catch (error) {
      const lost = new AppError("storage", `the database cannot be written: ${messageOf(error)}`, { cause: error });
      for (const piece of batch) piece.fail(lost);
      return;
    }
    for (const piece of batch) {
      if (failures.has(piece)) piece.fail(failures.get(piece));
      else piece.settle();
    }
  }
}
