/**
 * Results of searches and tests on this machine, kept in one JSON file of the cache folder. A file that cannot be read
 * counts as empty and is replaced by the next write.
 */
import { readFile, stat } from "node:fs/promises";
import { writeBytes, writeDurably } from "../../../base/system.ts";

/** An entry has a few hundred bytes. */
const FILE_BYTES_MAX = 1024 * 1024;
const ENTRIES_MAX = 1000;

export interface KeptFile {
  /** The value stored under that key, of any shape: other programs may write there. Undefined if missing. */
  read(key: string): Promise<unknown>;
  /** If two processes write at once, the result of one is lost. Throws `storage`. */
  write(key: string, value: unknown): Promise<void>;
}

export function keptFile(path: string): KeptFile {
  return {
    read: async (key) => (await readAll(path)).get(key),
    async write(key, value) {
      const all = await readAll(path);
      all.delete(key);
      const kept = [...all, [key, value] as const].slice(-ENTRIES_MAX);
      const text = `${JSON.stringify(Object.fromEntries(kept), null, 2)}\n`;
      await writeDurably(path, (temporary) => writeBytes(temporary, new TextEncoder().encode(text)));
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
