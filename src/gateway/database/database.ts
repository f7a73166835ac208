/**
 * SQLite files that survive a kill and a power cut: opened with a write-ahead log, migrated to the current tables, and
 * written through one group commit, so that a thousand small durable writes cost a few syncs.
 */
import { Database, SQLiteError } from "bun:sqlite";
import { closeSync, existsSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { AppError, messageOf } from "../../base/index.ts";
import { makePrivate } from "../../base/system.ts";
import { WriteAheadLog } from "./write-ahead-log.ts";

export type { Database } from "bun:sqlite";

/** A step from one version of the tables to the next. Names are permanent: a step that has run never runs again. */
export interface Migration {
  readonly name: string;
  readonly sql: string;
}

/**
 * Settings of each connection. synchronous = NORMAL: a power cut may lose an unsynced commit, never half of one;
 * `Writer` syncs before it resolves. temp_store = MEMORY: savepoints would otherwise write a temporary file.
 */
export const SETTINGS = `PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY;
  PRAGMA foreign_keys = ON; PRAGMA busy_timeout = 5000`;

/** Gets the names of the steps that ran on tables that existed already. */
export type OnMigrated = (names: readonly string[]) => void;

/**
 * Opens or creates a database, and runs new migrations. Throws `storage` if the file cannot be opened or is not a
 * database.
 */
export function openDatabase(path: string, migrations: readonly Migration[], onMigrated?: OnMigrated): Database {
  try {
    if (path !== ":memory:") mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    if (path !== ":memory:") keepPrivate(path);
    const db = new Database(path, { create: true, strict: true });
    db.run(SETTINGS);
    const names = db.transaction(migrate).immediate(db, migrations);
    if (names.length > 0) onMigrated?.(names);
    return db;
  } catch (error) {
    throw new AppError("storage", `cannot open the database '${path}': ${messageOf(error)}`, { cause: error });
  }
}

/**
 * Owner-only file mode; SQLite gives the files beside it the same mode. On Windows the folder's access list counts, and
 * the mode of an open file cannot be changed.
 */
function keepPrivate(path: string): void {
  if (process.platform === "win32") return;
  closeSync(openSync(path, "a", 0o600));
  for (const file of [path, `${path}-wal`, `${path}-shm`]) if (existsSync(file)) makePrivate(file);
}

/** Returns the names of the steps that ran on tables that existed already. */
function migrate(db: Database, migrations: readonly Migration[]): string[] {
  db.run("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY) STRICT");
  const seen = new Set(
    db
      .query<{ name: string }, []>("SELECT name FROM migrations")
      .all()
      .map((row) => row.name),
  );
  const steps = migrations.filter((migration) => !seen.has(migration.name));
  for (const { name, sql } of steps) {
    db.run(sql);
    db.run("INSERT INTO migrations (name) VALUES (?)", [name]);
  }
  return seen.size === 0 ? [] : steps.map(({ name }) => name);
}

/** Time to wait for another process that writes to the file, and interval of tries meanwhile. */
const BUSY_MS = 5000;
const BUSY_LOOK_MS = 10;

const isBusy = (error: unknown): boolean =>
  error instanceof SQLiteError && error.code?.startsWith("SQLITE_BUSY") === true;

interface Pending {
  readonly run: () => void;
  readonly settle: () => void;
  readonly fail: (error: unknown) => void;
}

/**
 * Runs pieces of work inside shared transactions. Only a piece that throws is rolled back; the others of its commit are
 * kept. Work is synchronous: nothing else runs between its first statement and its last. Pieces that arrive during a
 * commit share the next one.
 */
export class Writer {
  readonly #db: Database;
  readonly #log: WriteAheadLog;
  #pending: Pending[] = [];
  #failure: AppError | undefined;
  /** Resolves when nothing is pending. */
  #writing: Promise<void> | undefined;

  constructor(db: Database) {
    this.#db = db;
    db.run("PRAGMA busy_timeout = 0"); // SQLite's own wait would block the event loop; with a log, reads need none
    this.#log = new WriteAheadLog(db);
  }

  /**
   * Resolves with the work's result once it is on the disk; readers may see it a little earlier. Rejects with the
   * work's error, or `storage`.
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

  /** The error of the last commit; undefined if it succeeded. */
  get failure(): AppError | undefined {
    return this.#failure;
  }

  /** Resolves once all pending work is stored. No work may follow. */
  async close(): Promise<void> {
    await this.#writing;
    this.#log.close();
  }

  async #writeAll(): Promise<void> {
    await endOfTurn(); // lets more work join this commit
    while (this.#pending.length > 0) {
      const batch = this.#pending;
      this.#pending = [];
      await this.#write(batch);
    }
    this.#writing = undefined;
  }

  async #write(batch: Pending[]): Promise<void> {
    try {
      const failures = await this.#commitOnceFree(batch);
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

  /** @param batch work that arrives while it waits joins it */
  async #commitOnceFree(batch: Pending[]): Promise<ReadonlyMap<Pending, unknown>> {
    for (const until = performance.now() + BUSY_MS; ;) {
      try {
        return this.#commit(batch);
      } catch (error) {
        if (!isBusy(error) || performance.now() > until) throw error;
      }
      await Bun.sleep(BUSY_LOOK_MS);
      batch.push(...this.#pending.splice(0));
    }
  }

  /**
   * One transaction for all, with a savepoint for each. BEGIN IMMEDIATE takes the write lock at the start; a later
   * upgrade could only fail. Returns the errors of pieces.
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
          // A full disk rolls back everything, so later pieces would be committed alone
          if (!this.#db.inTransaction) throw error;
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
