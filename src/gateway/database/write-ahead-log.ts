/**
 * Syncs SQLite's write-ahead log. SQLite itself would sync it inside the commit, with `fsync`, and block the event loop
 * meanwhile; this syncs the same file from a thread of the pool, and only its data, which spares the file system's
 * journal.
 */
import type { Database } from "bun:sqlite";
import { closeSync, fdatasync, openSync } from "node:fs";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { flushDrive, syncFolder } from "../../base/system.ts";

const syncData = promisify(fdatasync);

/** Holds a file handle after the first sync; `close` releases it. */
export class WriteAheadLog {
  readonly #path: string;
  #handle: number | undefined;

  /** @param db open, with `journal_mode = WAL`; an in-memory database has no log, and needs no sync */
  constructor(db: Database) {
    this.#path = isInMemory(db) ? "" : `${db.filename}-wal`;
  }

  /** Resolves once all commits before the call are on the disk. */
  async sync(): Promise<void> {
    if (this.#path === "") return;
    if (this.#handle === undefined) {
      this.#handle = openSync(this.#path, "r+"); // exists from the first commit until the database is closed
      await syncFolder(dirname(this.#path)); // keeps the file itself
    }
    await syncData(this.#handle);
    flushDrive(this.#handle);
  }

  close(): void {
    if (this.#handle !== undefined) closeSync(this.#handle);
    this.#handle = undefined;
  }
}

const isInMemory = ({ filename }: Database): boolean => filename === "" || filename === ":memory:";
