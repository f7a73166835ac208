/**
 * Results of searches and tests on this machine, kept in one JSON file of the cache folder. A file that cannot be read
 * counts as empty and is replaced by the next write.
 */
import { mkdir, open, readFile, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";

/** An entry has a few hundred bytes. */
const FILE_BYTES_MAX = 1024 * 1024;
const ENTRIES_MAX = 1000;

export interface KeptFile {
  /** The value stored under that key, of any shape: other programs may write there. Undefined without one. */
  read(key: string): Promise<unknown>;
  /** Two processes at once: the result of one of them is lost. */
  write(key: string, value: unknown): Promise<void>;
}

export function keptFile(path: string): KeptFile {
  return {
    read: async (key) => (await readAll(path)).get(key),
    async write(key, value) {
      const all = await readAll(path);
      all.delete(key);
      const kept = [...all, [key, value] as const].slice(-ENTRIES_MAX);
      await replaceFile(path, `${JSON.stringify(Object.fromEntries(kept), null, 2)}\n`);
    },
  };
}

async function readAll(path: string): Promise<Map<string, unknown>> {
  try {
    if ((await stat(path)).size > FILE_BYTES_MAX) return new Map();
    const entries: unknown = JSON.parse(await readFile(path, "utf8"));
    return new Map(typeof entries === "object" && entries !== null ? Object.entries(entries) : []);
  } catch {
    return new Map(); // the file is missing or damaged
  }
}

async function replaceFile(path: string, text: string): Promise<void> {
  const temporary = `${path}.tmp-${crypto.randomUUID()}`;
  await mkdir(dirname(path), { recursive: true });
  try {
    const file = await open(temporary, "w");
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
