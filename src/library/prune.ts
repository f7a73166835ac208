/**
 * Clears a store of what nothing uses, when the server starts: blobs that no manifest refers to, files that a killed
 * process left half-written, empty folders. Nothing younger than an hour goes: another process may be about to use it.
 * What downloads have so far stays a week, for they can go on from there. Files with names that are not ours stay.
 * What was too young at the start is looked at once more when it is old enough.
 */
import { readdir, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, type Logger, messageOf } from "../base/index.ts";
import { parseDigest } from "./digest.ts";
import { removeLeftovers } from "../base/system.ts";
import { IN_USE_MS, isOld, readReferences } from "./references.ts";

const PARTIAL_AGE_MS = 7 * 24 * 3600_000; // someone who meant to go on with a download has done so

/** A file is old enough when it is older than an hour, by the clock of its disk. */
const LATER_MS = IN_USE_MS + 60_000;

/**
 * Removes half-written files once more, an hour from now: those that a process killed just before left. Only files that
 * nobody has written to since now go, so that what runs meanwhile keeps its own.
 * @returns what calls it off
 */
export function pruneLater(root: string, { clock, log }: { clock: Clock; log: Logger }): () => void {
  const startedMs = clock.now();
  return clock.after(LATER_MS, () => {
    const nowMs = clock.now();
    const age = { olderThanMs: Math.max(IN_USE_MS, nowMs - startedMs), nowMs };
    removeLeftovers(join(root, "blobs"), age).catch((error: unknown) =>
      log.warn("the store cannot be cleared of half-written files", { root, error: messageOf(error) }),
    );
  });
}

/** Never throws: a store that cannot be changed is served as it is. */
export async function pruneStore(root: string, { now, log }: { now: () => number; log: Logger }): Promise<void> {
  try {
    await removeLeftovers(join(root, "blobs"), { olderThanMs: IN_USE_MS, nowMs: now() });
    const removed = await removeUnreferenced(root, { nowMs: now(), log });
    await removeEmptyFolders(join(root, "manifests"), now());
    if (removed > 0) log.info("removed blobs that no model refers to", { root, blobs: removed });
    const parts = await removePartials(root, now());
    if (parts > 0) log.info("removed downloads that nobody went on with", { root, files: parts });
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

/** A download is as old as its youngest file. */
async function removePartials(root: string, nowMs: number): Promise<number> {
  const downloads = new Map<string, string[]>();
  for (const name of await namesIn(join(root, "blobs"))) {
    const partial = /^(sha256-[0-9a-f]{64}-partial)(-\d+)?$/.exec(name)?.[1];
    if (partial) downloads.set(partial, [...(downloads.get(partial) ?? []), join(root, "blobs", name)]);
  }
  let removed = 0;
  for (const paths of downloads.values()) {
    const old = await Promise.all(paths.map((path) => isOld(path, nowMs, PARTIAL_AGE_MS)));
    if (old.includes(false)) continue;
    for (const path of paths) await rm(path, { force: true });
    removed += paths.length;
  }
  return removed;
}

/** Removes the folders below `folder` that hold nothing, leaves first, with half-written manifests on the way. */
async function removeEmptyFolders(folder: string, nowMs: number): Promise<void> {
  await removeLeftovers(folder, { olderThanMs: IN_USE_MS, nowMs });
  for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
    if (!entry.isDirectory()) continue;
    const path = join(folder, entry.name);
    const wasOld = await isOld(path, nowMs);
    await removeEmptyFolders(path, nowMs);
    if (wasOld) await rmdir(path).catch(() => {}); // fails where something is in it
  }
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}
