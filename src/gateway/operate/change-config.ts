/**
 * Changes the configuration file for a person: the new text is checked as a whole before it takes the old one's place,
 * which is kept beside it. A server that runs takes it up by itself.
 */
import { randomBytes } from "node:crypto";
import { chmod, readFile, realpath, writeFile } from "node:fs/promises";
import { configPath, type ConfigSources, type Edit, editJson5, readConfig } from "../../base/config/index.ts";
import { AppError } from "../../base/index.ts";
import { writeDurably } from "../../base/system.ts";
import { readSnapshot } from "./read.ts";

export interface ChangedConfig {
  readonly path: string;
  /** The file as it was; undefined: there was none. */
  readonly backup: string | undefined;
}

/** For those who can read it alone: it holds tokens. */
const PRIVATE = 0o600;

/** Of a token. */
export const makeToken = (): string => randomBytes(32).toString("hex");

/** The configuration file, or where it will be; symbolic links followed. */
export async function configFile(sources: ConfigSources): Promise<string> {
  const { path } = configPath(sources);
  return realpath(path).catch(() => path); // not there yet
}

/**
 * Throws `bad_request` naming file, line and key where the file would not be right; nothing is changed then. Throws
 * `storage` where it cannot be written.
 * @param options.first what the new text needs; done once it is known to be right, before it takes the old one's place
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

/** A file that its owner alone can read. */
export async function writePrivateFile(path: string, text: string): Promise<void> {
  await writeDurably(path, (temporary) => writePrivate(temporary, text));
}

async function writePrivate(path: string, text: string): Promise<void> {
  await writeFile(path, text, { mode: PRIVATE });
  await chmod(path, PRIVATE); // whatever the umask says
}

/** Reads the new text where it lies: includes are relative to its folder. */
function check(sources: ConfigSources, { temporary, path }: { temporary: string; path: string }): void {
  try {
    const as = { ...sources, flags: { ...sources.flags, config: temporary } };
    readSnapshot(as, readConfig(as));
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    throw new AppError(error.code, error.message.replaceAll(temporary, path), { cause: error });
  }
}
