/**
 * Clears a store of what nothing uses, when the server starts: blobs that no manifest refers to, files that a killed
 * process left half-written, empty folders. Nothing younger than an hour goes: another process may be about to use it.
 * Files with names that are not ours stay, among them the part files of downloads.
 */
import { readdir, rm, rmdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";
import { parseDigest } from "./digest.ts";
import { removeLeftovers } from "./durable.ts";
import { readReferences } from "./references.ts";

const AGE_MIN_MS = 3600_000; // long enough for any upload or copy that is still going on

/** Never throws: a store that cannot be changed is served as it is. */
export async function pruneStore(root: string, { now, log }: { now: () => number; log: Logger }): Promise<void> {
  try {
    await removeLeftovers(join(root, "blobs"), { olderThanMs: AGE_MIN_MS, nowMs: now() });
    const removed = await removeUnreferenced(root, { nowMs: now(), log });
    await removeEmptyFolders(join(root, "manifests"), now());
    if (removed > 0) log.info("removed blobs that no model refers to", { root, blobs: removed });
  } catch (error) {
    log.warn("the store cannot be cleared of what nothing uses", { root, error: messageOf(error) });
  }
}

async function removeUnreferenced(root: string, { nowMs, log }: { nowMs: number; log: Logger }): Promise<number> {
  const { digests, unreadable } = await readReferences(root);
  for (const manifest of unreadable) log.warn("no blobs are removed: a manifest cannot be read", manifest);
  if (unreadable.length > 0) return 0;
  let removed = 0;
  for (const name of await namesIn(join(root, "blobs"))) {
    if (!/^sha256-[0-9a-f]{64}$/.test(name) || digests.has(parseDigest(name))) continue;
    const path = join(root, "blobs", name);
    if (!(await isOld(path, nowMs))) continue;
    await rm(path);
    removed++;
  }
  return removed;
}

/** Removes the folders below `folder` that hold nothing, leaves first, with half-written manifests on the way. */
async function removeEmptyFolders(folder: string, nowMs: number): Promise<void> {
  await removeLeftovers(folder, { olderThanMs: AGE_MIN_MS, nowMs });
  for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
    if (!entry.isDirectory()) continue;
    const path = join(folder, entry.name);
    const wasOld = await isOld(path, nowMs);
    await removeEmptyFolders(path, nowMs);
    if (wasOld) await rmdir(path).catch(() => {}); // fails where something is in it
  }
}

/** By content and by name: a file that was copied or renamed into the store is as young as that. */
async function isOld(path: string, nowMs: number): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found !== undefined && nowMs - Math.max(found.mtimeMs, found.ctimeMs) > AGE_MIN_MS;
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}
