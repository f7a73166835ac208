/**
 * Which blobs the manifests of a store refer to. A blob goes only where every manifest could be read and none names it:
 * one that cannot be read may refer to anything.
 */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { mapAtOnce } from "./at-once.ts";
import { messageOf } from "../base/index.ts";
import { blobPath } from "./blobs.ts";
import type { Digest } from "./digest.ts";
import { removeFile } from "../base/system.ts";
import { readManifest, type Manifest } from "./manifest.ts";
import { manifestFiles } from "./store.ts";

interface References {
  readonly digests: ReadonlySet<Digest>;
  /** Manifests that could not be read. */
  readonly unreadable: readonly { readonly path: string; readonly reason: string }[];
}

/** Digests of the configuration and of every layer. */
export function digestsOf({ config, layers }: Manifest): Digest[] {
  return [config.digest, ...layers.map((layer) => layer.digest)];
}

export async function readReferences(root: string): Promise<References> {
  const digests = new Set<Digest>();
  const unreadable: { path: string; reason: string }[] = [];
  await mapAtOnce(await manifestFiles(root), async (segments) => {
    const path = join(root, "manifests", ...segments);
    try {
      for (const digest of digestsOf(await readManifest(path))) digests.add(digest);
    } catch (error) {
      if (!isNoManifest(error)) unreadable.push({ path, reason: messageOf(error) });
    }
  });
  return { digests, unreadable };
}

/** A folder where a manifest would be, or a manifest deleted meanwhile. */
function isNoManifest(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException; // undefined on errors of ours
  return code === "EISDIR" || code === "ENOENT";
}

/** Long enough for any upload or copy that is still going on. */
export const IN_USE_MS = 3600_000;

/** Whether a file exists and was not used recently. Copying or renaming counts as use. */
export async function isOld(path: string, nowMs: number, ageMs = IN_USE_MS): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found !== undefined && nowMs - Math.max(found.mtimeMs, found.ctimeMs) > ageMs;
}

/**
 * Deletes those of the blobs that no manifest refers to any more.
 * @param options.isShared others may be about to publish what is young: that stays
 * @param options.isHeld asked at the last moment
 * @returns the manifests that could not be read: where there are any, nothing was deleted
 */
export async function removeOrphans(
  root: string,
  candidates: Iterable<Digest>,
  { isShared, isHeld }: { isShared: boolean; isHeld: (digest: Digest) => boolean },
): Promise<References["unreadable"]> {
  const { digests, unreadable } = await readReferences(root);
  if (unreadable.length > 0) return unreadable;
  for (const digest of new Set(candidates)) {
    const path = blobPath(root, digest);
    if (digests.has(digest) || (isShared && !(await isOld(path, Date.now())))) continue;
    if (!isHeld(digest)) await removeFile(path);
  }
  return [];
}
