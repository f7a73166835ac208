/**
 * Stores the results of kernel searches in one file: `gpu-kernels.json` in the cache folder. An unreadable file counts
 * as missing, and is replaced.
 */
import { mkdir, open, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { TuningStore } from "../../program/backend.ts";

const FILE_NAME = "gpu-kernels.json";
/** A few hundred bytes per block type, row length and driver of this machine. */
const FILE_BYTES_MAX = 1024 * 1024;
const ENTRIES_MAX = 1000;

/** The store in that folder. If two processes write at once, one of them searches again later. */
export function tuningFile(cacheDir: string): TuningStore {
  const path = join(cacheDir, FILE_NAME);
  return {
    read: async (key) => (await readAll(path)).get(key),
    async write(key, tunings) {
      const all = await readAll(path);
      all.delete(key);
      const kept = [...all, [key, tunings] as const].slice(-ENTRIES_MAX);
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
    return new Map(); // missing or damaged
  }
}

async function replaceFile(path: string, text: string): Promise<void> {
  const temporary = `${path}.tmp-${crypto.randomUUID()}`;
  await mkdir(join(path, ".."), { recursive: true });
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
