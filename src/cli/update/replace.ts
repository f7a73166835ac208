/**
 * Replaces the program that runs. Its name never lacks a program; the one before stays beside it. Windows replaces no
 * file that runs, but lets it be renamed.
 */
import { copyFile, link, lstat, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { AppError } from "../../base/index.ts";
import { patiently, replaceFile, storageError, syncFolder } from "../../base/system.ts";

interface On {
  readonly platform?: NodeJS.Platform;
}

/** The place of the program before: `hearth.previous`, or `hearth.previous.exe`. */
export function previousOf(program: string): string {
  const name = basename(program);
  const [, stem, extension = ""] = /^(.*?)(\.exe)?$/i.exec(name)!;
  return join(dirname(program), `${stem}.previous${extension}`);
}

/**
 * Puts a complete file in the place of the program, and the program where `previousOf` says.
 * @param next an executable file in the same folder, which is gone then
 * Throws `storage` where the folder may not be written; the program is as before then.
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

/** Swaps the program and the one before: a second time goes forward again. Throws `not_found`, `storage`. */
export async function rollBack(program: string, on: On = {}): Promise<void> {
  const previous = previousOf(program);
  const found = await lstat(previous).catch(() => undefined);
  if (!found?.isFile()) throw new AppError("not_found", `there is no earlier program: '${previous}' does not exist`);
  const next = `${program}.${crypto.randomUUID()}`;
  try {
    await rename(previous, next);
    await putProgram(program, next, on);
  } catch (error) {
    await rename(next, previous).catch(() => {}); // it has its name already, if the program was replaced
    throw storageError(error, dirname(program));
  }
}
