/**
 * Files that another program holds. Windows neither removes nor replaces a file that is mapped, or that a scanner has
 * just opened; it can be moved away. Other systems give its name to another file at any time.
 */
import { rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";

/** Names of files that may go as soon as nothing uses them. */
export const TEMPORARY_PREFIX = ".tmp-";

/** Errors of a file that another program holds; a file that may not be changed at all has the same. */
const HELD = new Set(["EPERM", "EACCES", "EBUSY", "EFAULT"]);
/** Pauses between tries: 0.6 seconds in all. A scanner has done with a small file by then. */
const PAUSES_MS = [10, 20, 40, 80, 150, 300];
/** Between tries to remove a file that was moved away because it is mapped. */
const FREE_EVERY_MS = 20_000;

/** Flags that open a file to sync it: Windows syncs only a file that may be written. */
export const SYNC_FLAGS = process.platform === "win32" ? "r+" : "r";

interface On {
  readonly platform?: NodeJS.Platform;
}

/** Does work on a file, again after a pause while another program holds it. Throws what the last try threw. */
export async function patiently<T>(work: () => Promise<T>, { platform = process.platform }: On = {}): Promise<T> {
  for (const pauseMs of platform === "win32" ? PAUSES_MS : []) {
    try {
      return await work();
    } catch (error) {
      if (!isHeld(error)) throw error;
      await Bun.sleep(pauseMs);
    }
  }
  return work();
}

/** Gives a file the name of another of the same folder, which is gone then. */
export async function replaceFile({ from, to }: { from: string; to: string }, on: On = {}): Promise<void> {
  try {
    await patiently(() => rename(from, to), on);
  } catch (error) {
    if (!canMoveAway(error, on)) throw error;
    const aside = await moveAway(to, error);
    try {
      await rename(from, to);
    } catch (second) {
      await rename(aside, to);
      throw second;
    }
    removeWhenFree(aside);
  }
}

/** Removes a file, which may be gone already. Where it is mapped, its name is free at once, and its bytes later. */
export async function removeHeld(path: string, on: On = {}): Promise<void> {
  try {
    await rm(path, { force: true });
  } catch (error) {
    if (!canMoveAway(error, on)) throw error;
    removeWhenFree(await moveAway(path, error));
  }
}

const isHeld = (error: unknown): boolean => HELD.has((error as NodeJS.ErrnoException).code ?? "");

const canMoveAway = (error: unknown, { platform = process.platform }: On): boolean =>
  platform === "win32" && isHeld(error);

/** Renames a held file; returns the new name. Throws `first` if that fails too. */
async function moveAway(path: string, first: unknown): Promise<string> {
  const aside = join(dirname(path), TEMPORARY_PREFIX + crypto.randomUUID());
  await patiently(() => rename(path, aside)).catch(() => {
    throw first;
  });
  return aside;
}

/** Retries until this process ends. A later start removes what is left, like every temporary file. */
function removeWhenFree(path: string): void {
  const remove = (): Promise<void> => rm(path, { force: true }).then(() => clearInterval(timer));
  const timer = setInterval(() => void remove().catch(() => {}), FREE_EVERY_MS);
  timer.unref();
  void remove().catch(() => {});
}
