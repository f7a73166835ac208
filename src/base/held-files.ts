/**
 * Files that another program holds. Windows neither removes nor replaces a file that is mapped, or that a scanner has
 * just opened; it can be moved away. Other systems allow its name to be reused at any time.
 */
import { rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";

/** Prefix of the names of files that may be removed as soon as no process uses them. */
export const TEMPORARY_PREFIX = ".tmp-";

/** Errors for a file that another program holds; a file that may never be changed gives the same errors. */
const HELD = new Set(["EPERM", "EACCES", "EBUSY", "EFAULT"]);
/** Pauses between attempts: 0.6 seconds in all, after which a scanner has finished with a small file. */
const PAUSES_MS = [10, 20, 40, 80, 150, 300];
/** Time between attempts to remove a file that was moved away because it is mapped. */
const FREE_EVERY_MS = 20_000;

/** Flags for opening a file to sync it: Windows syncs only files that are opened for writing. */
export const SYNC_FLAGS = process.platform === "win32" ? "r+" : "r";

interface On {
  readonly platform?: NodeJS.Platform;
}

/** Does work on a file, and repeats it after a pause while another program holds the file. Throws the last error. */
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

/** Gives a file the name of another file in the same folder, which is replaced. */
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

/** Removes a file, which may be missing. If it is mapped, its name is free at once, and its bytes later. */
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

/** Retries until this process ends. A later start removes the file, like every temporary file. */
function removeWhenFree(path: string): void {
  const remove = (): Promise<void> => rm(path, { force: true }).then(() => clearInterval(timer));
  const timer = setInterval(() => void remove().catch(() => {}), FREE_EVERY_MS);
  timer.unref();
  void remove().catch(() => {});
}
