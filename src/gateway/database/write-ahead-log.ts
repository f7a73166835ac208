/**
 * The file in which SQLite writes what was committed before it moves into the database. SQLite itself syncs it inside
 * the commit, with `fsync`, and holds the event loop meanwhile; this syncs the same file from a thread of the pool,
 * and only its data, which spares the file system its journal.
 */
import type { Database } from "bun:sqlite";
import { closeSync, fdatasync, fsync, openSync } from "node:fs";
import { dirname } from "node:path";
import { promisify } from "node:util";

const syncData = promisify(fdatasync);
const syncAll = promisify(fsync);

/** Owns a file handle once something was synced; `close` gives it back. */
export class WriteAheadLog {
  readonly #path: string;
  #handle: number | undefined;

  /** @param db open, with `journal_mode = WAL`; one in memory has no log, and is synced at once */
  constructor(db: Database) {
    this.#path = isInMemory(db) ? "" : `${db.filename}-wal`;
  }

  /** Resolves once everything that was committed before the call is on the disk. */
  async sync(): Promise<void> {
    if (this.#path === "") return;
    if (this.#handle === undefined) {
      this.#handle = openSync(this.#path, "r+"); // there since the first commit, for as long as the database is open
      await syncFolder(dirname(this.#path));
    }
    await syncData(this.#handle);
  }

  close(): void {
    if (this.#handle !== undefined) closeSync(this.#handle);
    this.#handle = undefined;
  }
}

const isInMemory = ({ filename }: Database): boolean => filename === "" || filename === ":memory:";

/** That the file is there is kept by its folder. */
async function syncFolder(path: string): Promise<void> {
  if (process.platform === "win32") return; // where folders cannot be opened
  const handle = openSync(path, "r");
  try {
    await syncAll(handle);
  } finally {
    closeSync(handle);
  }
}
