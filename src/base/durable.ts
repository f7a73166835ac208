/**
 * Files that survive a kill: written under a temporary name in the same folder, synced, renamed, and the folder synced
 * too. A reader sees the old file or the new one, never half a file.
 */
import { chmodSync, constants } from "node:fs";
import { copyFile, mkdir, open, readdir, rm, stat, type FileHandle } from "node:fs/promises";
import { dirname, join } from "node:path";
import { inBlocks } from "./blocks.ts";
import { AppError } from "./errors.ts";
import { flushDrive } from "./flush-drive.ts";
import { removeHeld, replaceFile, SYNC_FLAGS, TEMPORARY_PREFIX } from "./held-files.ts";

/** Removes temporary files of killed processes; young ones may still be in use. */
export async function removeLeftovers(
  folder: string,
  { olderThanMs, nowMs = Date.now() }: { olderThanMs: number; nowMs?: number },
): Promise<void> {
  const names = await readdir(folder).catch(() => []);
  for (const name of names.filter((entry) => entry.startsWith(TEMPORARY_PREFIX))) {
    const path = join(folder, name);
    const found = await stat(path).catch(() => undefined);
    if (found && nowMs - found.mtimeMs > olderThanMs) await removeHeld(path);
  }
}

/**
 * Writes `path` through a temporary file beside it, which is removed on failure. Throws `storage` if the disk is full
 * or not writable.
 * @param fill writes the temporary file; it may return another destination than `path`
 */
export async function writeDurably(path: string, fill: (temporary: string) => Promise<string | void>): Promise<void> {
  const folder = dirname(path);
  const temporary = join(folder, TEMPORARY_PREFIX + crypto.randomUUID());
  try {
    await mkdir(folder, { recursive: true });
    const target = (await fill(temporary)) ?? path;
    await putInPlace({ from: temporary, to: target });
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {}); // the first error explains more
    throw storageError(error, folder);
  }
}

/** Renames a complete file within its folder, once its content is on the disk. */
export async function putInPlace({ from, to }: { from: string; to: string }): Promise<void> {
  await sync(from);
  await replaceFile({ from, to });
  await syncFolder(dirname(to));
}

/**
 * Syncs a folder, so that its list of files survives. Windows cannot open folders, and syncs them by itself, as do file
 * systems that refuse it (SMB, some of FUSE).
 */
export async function syncFolder(folder: string): Promise<void> {
  if (process.platform !== "win32") await sync(folder).catch(unlessUnknown);
}

/** Lets only the owner read and write a file, whatever the umask. Without modes (SMB, NTFS) its folder must do that. */
export function makePrivate(path: string): void {
  try {
    chmodSync(path, 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EPERM") unlessUnknown(error);
  }
}

/** Errors of file systems for an operation that they do not have. */
const UNKNOWN = new Set<string | undefined>(["EINVAL", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"]);

function unlessUnknown(error: unknown): void {
  if (!UNKNOWN.has((error as NodeJS.ErrnoException).code)) throw error;
}

/** Error codes of a disk that refuses a write, with their messages. */
const DISK_REFUSES: Readonly<Record<string, string>> = {
  ENOSPC: "no space left on the disk",
  EDQUOT: "the disk quota is used up",
  EFBIG: "the file is larger than the disk or a limit allows",
  EROFS: "the file system is read-only",
  EACCES: "permission denied",
  EPERM: "operation not permitted",
  EIO: "the disk fails",
};

/** The `storage` error for a refused write; other errors are returned unchanged. */
export function storageError(error: unknown, folder: string): unknown {
  const reason = DISK_REFUSES[(error as NodeJS.ErrnoException).code ?? ""]; // our own errors have other codes
  return reason ? new AppError("storage", `cannot write to '${folder}': ${reason}`, { cause: error }) : error;
}

/** Removes a file that may not exist. Throws `storage`. */
export async function removeFile(path: string): Promise<void> {
  await removeHeld(path).catch((error: unknown) => {
    throw storageError(error, dirname(path));
  });
}

export async function writeBytes(path: string, bytes: Uint8Array): Promise<void> {
  await Bun.write(path, bytes);
}

/** Copies to a new file; shares blocks if the file system supports it. */
export async function copyBytes({ from, to }: { from: string; to: string }): Promise<void> {
  try {
    await copyFile(from, to, constants.COPYFILE_FICLONE_FORCE | constants.COPYFILE_EXCL);
  } catch {
    await rm(to, { force: true }); // removes a partial copy
    await using file = await open(to, "wx");
    await writeChunks(file, inBlocks(Bun.file(from).stream()));
  }
}

/** Appends all chunks. Returns the number of bytes. */
export async function writeChunks(file: FileHandle, chunks: AsyncIterable<Uint8Array>): Promise<number> {
  let bytes = 0;
  for await (const chunk of chunks) {
    for (let done = 0; done < chunk.length;) done += (await file.write(chunk, done)).bytesWritten;
    bytes += chunk.length;
  }
  return bytes;
}

async function sync(path: string): Promise<void> {
  const handle = await open(path, SYNC_FLAGS);
  try {
    await handle.sync();
    flushDrive(handle.fd);
  } finally {
    await handle.close();
  }
}
