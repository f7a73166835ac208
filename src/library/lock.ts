/**
 * One server at a time changes a store: what one publishes, holds or deletes it knows of itself alone. The others serve
 * what is there. Taken at the first change, so that the next server has it when the one before has ended.
 */
import { join } from "node:path";
import { AppError } from "../base/index.ts";
import { type ProcessLock, takeLock } from "../base/system.ts";

const FILE = "hearth.lock";

export interface StoreLock {
  /**
   * Throws `conflict` while another server has it.
   * @returns false where the folder takes no lock: others may change it
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
