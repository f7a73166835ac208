/**
 * Replaces the running program. A program exists under its name at all times, and the previous one is kept beside it.
 * Windows replaces no running program, but allows it to be renamed.
 */
import { copyFile, link, lstat, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { AppError } from "../../base/index.ts";
import { patiently, replaceFile, storageError, syncFolder } from "../../base/system.ts";

interface On {
  readonly platform?: NodeJS.Platform;
}

/** The path of the previous program: `hearth.previous`, or `hearth.previous.exe`. */
export function previousOf(program: string): string {
  const name = basename(program);
  const [, stem, extension = ""] = /^(.*?)(\.exe)?$/i.exec(name)!;
  return join(dirname(program), `${stem}.previous${extension}`);
}

/**
 * Moves a complete file to the program's path, and the program to `previousOf`.
 * @param next an executable file in the same folder, which is moved
 * Throws `storage` if the folder is not writable; then the program is unchanged.
 */
export async function putProgram(program: string, next: string, on: On = {}): Promise<void> {
  try {
    if ((on.platform ?? process.platform) === "win32") await putBesideRunning(program, next, on);
    else await putAtomically(program, next);
    await syncFolder(dirname(program));
  } catch (error) {
    throw storageError(error, dirname(program));
  }
}

async function putAtomically(program: string, next: string): Promise<void> {
  const kept = `${program}.${crypto.randomUUID()}`;
  try {
    await link(program, kept).catch(() => copyFile(program, kept)); // a file system may lack hard links
    await rename(kept, previousOf(program));
  } finally {
    await rm(kept, { force: true }); // left by a failure
  }
  await rename(next, program);
}

async function putBesideRunning(program: string, next: string, on: On): Promise<void> {
  const previous = previousOf(program);
  await replaceFile({ from: program, to: previous }, on);
  try {
    await patiently(() => rename(next, program), on);
  } catch (error) {
    await rename(previous, program);
    throw error;
  }
}

/** Swaps the program and the previous one, so that a second call undoes the first. Throws `not_found`, `storage`. */
export async function rollBack(program: string, on: On = {}): Promise<void> {
  const previous = previousOf(program);
  const found = await lstat(previous).catch(() => undefined);
  if (!found?.isFile()) throw new AppError("not_found", `there is no earlier program: '${previous}' does not exist`);
  const next = `${program}.${crypto.randomUUID()}`;
  try {
    await rename(previous, next);
    await putProgram(program, next, on);
  } catch (error) {
    await rename(next, previous).catch(() => {}); // the file has its name already if the program was replaced
    throw storageError(error, dirname(program));
  }
}
