/**
 * The right to change a store, which one server has at a time, because it alone knows which blobs it publishes, holds
 * or deletes. Other servers only read. Taken at the first change, so a server can start while its predecessor still
 * ends.
 */
import { join } from "node:path";
import { AppError } from "../../base/index.ts";
import { type ProcessLock, takeLock } from "../../base/system.ts";

const FILE = "hearth.lock";

export interface StoreLock {
  /**
   * Throws `conflict` while another server holds it.
   * @returns false if the folder cannot hold a lock: other servers may change it
   */
  claim(): boolean;
  release(): void;
}

export function makeStoreLock(root: string): StoreLock {
  let lock: ProcessLock | undefined;
  return {
    claim() {
      try {
        lock ??= takeLock(join(root, FILE), "the model store", { waitMs: 0 });
        return true;
      } catch (error) {
        if (error instanceof AppError && error.code === "storage") return false;
        throw error;
      }
    },
    release() {
      lock?.release();
      lock = undefined;
    },
  };
}
