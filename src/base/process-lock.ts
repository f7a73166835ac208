/**
 * A lock for one process at a time. The operating system releases it when its holder ends in any way, so it is never
 * stale. It is SQLite's lock on a separate file, which works in the same way on every system.
 */
import { Database } from "bun:sqlite";
import { accessSync, constants, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { storageError } from "./durable.ts";
import { AppError, messageOf } from "./errors.ts";

export interface ProcessLock {
  release(): void;
}

/** Time for an ending process to release the lock. Blocks this process meanwhile. */
const WAIT_MS = 1000;
/** Another process may write its number just before the lock is taken. */
const TRIES = 5;

/**
 * Holds the lock until `release` or the end of the process.
 * Throws `conflict` naming the process that holds it, or `storage` if the file is not usable.
 * @param what names the locked thing in the message
 */
export function takeLock(path: string, what: string, { waitMs = WAIT_MS } = {}): ProcessLock {
  let db: Database | undefined;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    db = new Database(path, { create: true });
    db.run(`PRAGMA busy_timeout = ${waitMs}`);
    for (let tries = 1; !isHeld(db); tries++) {
      if (tries === TRIES) throw new AppError("conflict", `${what}: other processes keep taking it`);
    }
    const held = db;
    return { release: () => held.close() };
  } catch (error) {
    const holder = isBusy(error) && db ? holderOf(db) : undefined;
    db?.close();
    if (error instanceof AppError) throw error;
    if (holder !== undefined) {
      throw new AppError("conflict", `${what} is in use by process ${holder}: stop that one first`, { cause: error });
    }
    checkWritable(path);
    throw new AppError("storage", `cannot lock '${path}': ${messageOf(error)}`, { cause: error });
  }
}

/** Throws `storage` with the system's reason if the file may not be written: SQLite calls it a readonly database. */
function checkWritable(path: string): void {
  for (const each of [path, dirname(path)]) {
    try {
      accessSync(each, constants.W_OK);
    } catch (error) {
      const refused = storageError(error, each);
      if (refused instanceof AppError) throw refused; // else the file does not exist yet
    }
  }
}

/**
 * Writes our process number for the next process, and takes the lock; false if another process has written its number
 * meanwhile.
 */
function isHeld(db: Database): boolean {
  db.run(`PRAGMA user_version = ${process.pid}`);
  db.run("BEGIN IMMEDIATE");
  if (holderOf(db) === process.pid) return true;
  db.run("ROLLBACK");
  return false;
}

const isBusy = (error: unknown): boolean => (error as { code?: unknown }).code === "SQLITE_BUSY";

const holderOf = (db: Database): number | undefined =>
  db.query<{ user_version: number }, []>("PRAGMA user_version").get()?.user_version;
