/**
 * Changes the configuration file for a user: the new text is checked as a whole before it replaces the old one, which
 * is kept as a backup. A running server reloads it by itself.
 */
import { randomBytes } from "node:crypto";
import { readFile, realpath, writeFile } from "node:fs/promises";
import { configPath, type ConfigSources, type Edit, editJson5, readConfig } from "../../base/config/index.ts";
import { AppError } from "../../base/index.ts";
import { makePrivate, writeDurably } from "../../base/system.ts";
import { readSnapshot } from "./read.ts";

export interface ChangedConfig {
  readonly path: string;
  /** Backup of the previous file; undefined: there was no file. */
  readonly backup: string | undefined;
}

/** Owner-only: the file holds tokens. */
const PRIVATE = 0o600;

export const makeToken = (): string => randomBytes(32).toString("hex");

/** Path of the configuration file, existing or not; symbolic links are followed. */
export async function configFile(sources: ConfigSources): Promise<string> {
  const { path } = configPath(sources);
  return realpath(path).catch(() => path); // the file does not exist yet
}

/**
 * Throws `bad_request` naming file, line and key if the new file would be invalid, and changes nothing then. Throws
 * `storage` if it cannot be written.
 * @param options.first writes files that the new text needs; called once the text is known to be valid, before it
 * replaces the old one
 */
export async function changeConfig(
  sources: ConfigSources,
  edits: readonly Edit[],
  { first = async () => {} }: { first?: () => Promise<void> } = {},
): Promise<ChangedConfig> {
  const path = await configFile(sources);
  const before = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw new AppError("storage", `cannot read '${path}': ${error.code}`, { cause: error });
  });
  const after = editJson5(before ?? "{\n}\n", edits);
  const backup = before === undefined ? undefined : `${path}.bak`;
  await writeDurably(path, async (temporary) => {
    await writePrivate(temporary, after);
    check(sources, { temporary, path });
    await first();
    if (backup !== undefined) await writeDurably(backup, (copy) => writePrivate(copy, before ?? ""));
  });
  return { path, backup };
}

/** Writes a file that only its owner can read. */
export async function writePrivateFile(path: string, text: string): Promise<void> {
  await writeDurably(path, (temporary) => writePrivate(temporary, text));
}

async function writePrivate(path: string, text: string): Promise<void> {
  await writeFile(path, text, { mode: PRIVATE });
  makePrivate(path);
}

/** Checks the new text in its folder: includes are relative to it. */
function check(sources: ConfigSources, { temporary, path }: { temporary: string; path: string }): void {
  try {
    const as = { ...sources, flags: { ...sources.flags, config: temporary } };
    readSnapshot(as, readConfig(as));
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new AppError(error.code, error.message.replaceAll(temporary, path), { cause: error });
  }
}
