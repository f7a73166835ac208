/**
 * SQLite files that survive a kill and a power cut: opened with a write-ahead log, brought up to date by migrations,
 * and written through one group commit, so that a thousand small durable writes cost a few syncs.
 */
import { Database } from "bun:sqlite";
import { chmodSync, closeSync, existsSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { AppError, messageOf } from "../../base/index.ts";
import { WriteAheadLog } from "./write-ahead-log.ts";

export type { Database } from "bun:sqlite";

/** A step from one shape of the tables to the next. Names are for ever: a step that has run is not run again. */
export interface Migration {
  readonly name: string;
  readonly sql: string;
}

/**
 * What a connection begins with. Normal: a commit that was not synced may be lost with the power, never half; `Writer`
 * syncs before it resolves. In memory: what undoes one piece of a commit, which would else be written to a temporary
 * file.
 */
export const SETTINGS = `PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY;
  PRAGMA foreign_keys = ON; PRAGMA busy_timeout = 5000`;

/**
 * Opens a database, making it where there is none, and runs the migrations that it has not seen.
 * Throws `storage` where the file cannot be opened or is no database.
 */
export function openDatabase(path: string, migrations: readonly Migration[]): Database {
  try {
    if (path !== ":memory:") mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    if (path !== ":memory:") keepPrivate(path);
    const db = new Database(path, { create: true, strict: true });
    db.run(SETTINGS);
    db.transaction(migrate).immediate(db, migrations);
    return db;
  } catch (error) {
    throw new AppError("storage", `cannot open the database '${path}': ${messageOf(error)}`, { cause: error });
  }
}

/** For its owner's eyes alone; SQLite gives the files beside it the same mode. */
function keepPrivate(path: string): void {
  closeSync(openSync(path, "a", 0o600));
  for (const file of [path, `${path}-wal`, `${path}-shm`]) if (existsSync(file)) chmodSync(file, 0o600);
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
 * stand. Work is synchronous: nothing else runs between its first statement and its last. What comes in while a commit
 * is on its way to the disk shares the next one.
 */
export class Writer {
  readonly #db: Database;
  readonly #log: WriteAheadLog;
  #pending: Pending[] = [];
  #failure: AppError | undefined;
  /** Until nothing is pending. */
  #writing: Promise<void> | undefined;

  constructor(db: Database) {
    this.#db = db;
    this.#log = new WriteAheadLog(db);
  }

  /**
   * Resolves with the work's result once it is on the disk; others may read it a little earlier. Rejects with what the
   * work threw, or `storage`.
   */
  write<T>(work: (db: Database) => T): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    let result: T;
    const run = (): void => {
      result = work(this.#db);
    };
    this.#pending.push({ run, settle: () => resolve(result), fail: reject });
    this.#writing ??= this.#writeAll();
    return promise;
  }

  /** Why the last commit failed; undefined where it did not. */
  get failure(): AppError | undefined {
    return this.#failure;
  }

  /** Resolves once all that was to be written is. No work may come after it. */
  async close(): Promise<void> {
    await this.#writing;
    this.#log.close();
  }

  async #writeAll(): Promise<void> {
    await endOfTurn(); // for what else came in with it
    while (this.#pending.length > 0) {
      const batch = this.#pending;
      this.#pending = [];
      await this.#write(batch);
    }
    this.#writing = undefined;
  }

  async #write(batch: readonly Pending[]): Promise<void> {
    try {
      const failures = this.#commit(batch);
      await this.#log.sync();
      this.#failure = undefined;
      for (const piece of batch) {
        if (failures.has(piece)) piece.fail(failures.get(piece));
        else piece.settle();
      }
    } catch (error) {
      const lost = new AppError("storage", `the database cannot be written: ${messageOf(error)}`, { cause: error });
      this.#failure = lost;
      for (const piece of batch) piece.fail(lost);
    }
  }

  /**
   * One transaction for all, with a savepoint for each. It takes the right to write at its beginning, and waits for it
   * there: one that finds out later that another has it can only fail. Returns what pieces threw.
   */
  #commit(batch: readonly Pending[]): ReadonlyMap<Pending, unknown> {
    const failures = new Map<Pending, unknown>();
    this.#do("BEGIN IMMEDIATE");
    try {
      for (const piece of batch) {
        try {
          this.#do("SAVEPOINT piece");
          piece.run();
        } catch (error) {
          if (!this.#db.inTransaction) throw error; // a full disk undoes all: what comes next would stand alone
          this.#do("ROLLBACK TO piece");
          failures.set(piece, error);
        }
        this.#do("RELEASE piece");
      }
      this.#do("COMMIT");
    } catch (error) {
      if (this.#db.inTransaction) this.#do("ROLLBACK");
      throw error;
    }
    return failures;
  }

  #do(statement: string): void {
    this.#db.query(statement).run();
  }
}

const endOfTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
