/**
 * The blobs that the manifests of a store refer to. A blob is deleted only if every manifest was readable and none
 * names it: an unreadable one may refer to any blob.
 */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { mapAtOnce } from "./at-once.ts";
import { messageOf } from "../../base/index.ts";
import { blobPath } from "./blobs.ts";
import type { Digest } from "./digest.ts";
import { removeFile } from "../../base/system.ts";
import { readManifest, type Manifest } from "./manifest.ts";
import { manifestFiles } from "./store.ts";

interface References {
  readonly digests: ReadonlySet<Digest>;
  /** Unreadable manifests. */
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

/** Returns whether the path of a manifest is a folder, or the manifest was deleted meanwhile. */
function isNoManifest(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException; // undefined on our own errors
  return code === "EISDIR" || code === "ENOENT";
}

/** Longer than any upload or copy takes. */
export const IN_USE_MS = 3600_000;

/** Returns whether a file exists and was not used recently. Copying or renaming counts as use. */
export async function isOld(path: string, nowMs: number, ageMs = IN_USE_MS): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found !== undefined && nowMs - Math.max(found.mtimeMs, found.ctimeMs) > ageMs;
}

/**
 * Deletes the given blobs that no manifest refers to.
 * @param options.isShared other processes may be about to publish young blobs: those stay
 * @param options.isHeld called at the last moment
 * @returns the unreadable manifests: if there are any, nothing was deleted
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
