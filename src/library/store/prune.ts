/**
 * Clears a store of unused files when the server starts: blobs without a manifest, half-written files of killed
 * processes, empty folders. Files younger than an hour stay, because another process may be about to use them. Partial
 * downloads stay for a week, because they can resume. Files with unknown names stay. Half-written files that were too
 * young at the start are checked once more later, and blobs and downloads once a day.
 */
import { readdir, rm, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, type Logger, messageOf } from "../../base/index.ts";
import { type Digest, parseDigest } from "./digest.ts";
import { removeLeftovers } from "../../base/system.ts";
import { IN_USE_MS, isOld, readReferences } from "./references.ts";

const PARTIAL_AGE_MS = 7 * 24 * 3600_000; // longer than an abandoned download is likely to be resumed

const DAY_MS = 24 * 3600_000;
const BLOB = /^sha256-[0-9a-f]{64}$/;

/** A file is old after an hour, by its disk's clock. */
const LATER_MS = IN_USE_MS + 60_000;

/**
 * Removes half-written files once more after an hour: files left just before by a killed process. Files written to
 * since the start stay, because they are in use.
 * @returns a function that cancels it
 */
export function pruneLater(root: string, { clock, log }: { clock: Clock; log: Logger }): () => void {
  const startedMs = clock.now();
  return clock.after(LATER_MS, () => {
    const nowMs = clock.now();
    const age = { olderThanMs: Math.max(IN_USE_MS, nowMs - startedMs), nowMs };
    removeLeftovers(join(root, "blobs"), age).catch((error: unknown) =>
      log.warn("could not remove partial files from the store", { root, error: messageOf(error) }),
    );
  });
}

interface DailyParts {
  /** Deletes the given blobs that no model uses, and that no creation or download protects. */
  readonly sweep: (digests: readonly Digest[]) => Promise<void>;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Once a day, removes blobs that clients uploaded a day ago or longer and no model uses, and abandoned downloads.
 * @returns a function that ends it
 */
export function pruneDaily(root: string, { sweep, clock, log }: DailyParts): () => void {
  let isOver = false;
  const again = (): (() => void) => clock.after(DAY_MS, () => void round());
  let cancel = again();
  const round = async (): Promise<void> => {
    try {
      const nowMs = clock.now();
      const old: Digest[] = [];
      for (const name of (await namesIn(join(root, "blobs"))).filter((each) => BLOB.test(each))) {
        if (await isOld(join(root, "blobs", name), nowMs, DAY_MS)) old.push(parseDigest(name));
      }
      await sweep(old);
      await removePartials(root, nowMs);
    } catch (error) {
      log.warn("could not remove unused files from the store", { root, error: messageOf(error) });
    }
    if (!isOver) cancel = again();
  };
  return () => {
    isOver = true;
    cancel();
  };
}

/** Never throws: an unwritable store is served unchanged. */
export async function pruneStore(root: string, { now, log }: { now: () => number; log: Logger }): Promise<void> {
  try {
    await removeLeftovers(join(root, "blobs"), { olderThanMs: IN_USE_MS, nowMs: now() });
    const removed = await removeUnreferenced(root, { nowMs: now(), log });
    await removeEmptyFolders(join(root, "manifests"), now());
    if (removed > 0) log.info("removed blobs that no model refers to", { root, blobs: removed });
    const parts = await removePartials(root, now());
    if (parts > 0) log.info("removed abandoned partial downloads", { root, files: parts });
  } catch (error) {
    log.warn("could not remove unused files from the store", { root, error: messageOf(error) });
  }
}

async function removeUnreferenced(root: string, { nowMs, log }: { nowMs: number; log: Logger }): Promise<number> {
  const { digests, unreadable } = await readReferences(root);
  for (const manifest of unreadable) log.warn("no blobs are removed: a manifest cannot be read", manifest);
  if (unreadable.length > 0) return 0;
  let removed = 0;
  for (const name of await namesIn(join(root, "blobs"))) {
    if (!BLOB.test(name) || digests.has(parseDigest(name))) continue;
    const path = join(root, "blobs", name);
    if (!(await isOld(path, nowMs))) continue;
    await rm(path);
    removed++;
  }
  return removed;
}

/** The age of a download is that of its youngest file. */
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

/** Removes empty folders below `folder`, leaves first, together with half-written manifests. */
async function removeEmptyFolders(folder: string, nowMs: number): Promise<void> {
  await removeLeftovers(folder, { olderThanMs: IN_USE_MS, nowMs });
  for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
    if (!entry.isDirectory()) continue;
    const path = join(folder, entry.name);
    const wasOld = await isOld(path, nowMs);
    await removeEmptyFolders(path, nowMs);
    if (wasOld) await rmdir(path).catch(() => {}); // fails unless empty
  }
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}
