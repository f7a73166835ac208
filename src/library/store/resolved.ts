/**
 * Caches models that requests have named while their manifests are unchanged: a request costs one `stat`. Blobs are
 * named by digest, so their content cannot change.
 */
import { statSync } from "node:fs";

interface Kept<T> {
  readonly stamp: string;
  readonly value: T;
}

export interface Resolved<T> {
  /** The cached content of a manifest; undefined if never read, or if the file was replaced or written since. */
  known(manifest: string): T | undefined;
  /** Reads a manifest and caches the result. */
  read(manifest: string, read: () => Promise<T>): Promise<T>;
}

/** @param keptMax maximum number of manifests; the most recently used stay */
export function makeResolved<T>(keptMax: number): Resolved<T> {
  const kept = new Map<string, Kept<T>>(); // by path, most recently used last
  const keep = (manifest: string, entry: Kept<T>): void => {
    kept.delete(manifest);
    kept.set(manifest, entry);
    if (kept.size > keptMax) kept.delete(kept.keys().next().value!); // not empty
  };
  return {
    known(manifest) {
      const entry = kept.get(manifest);
      if (!entry || stampOf(manifest) !== entry.stamp) return undefined;
      keep(manifest, entry);
      return entry.value;
    },
    async read(manifest, read) {
      // Read first: after a change in between the stamp differs, so the next request reads the file again
      const stamp = stampOf(manifest);
      const value = await read();
      if (stamp === undefined) kept.delete(manifest);
      else keep(manifest, { stamp, value });
      return value;
    },
  };
}

/** A stamp that changes with the file: a file replaced by renaming has another inode. */
function stampOf(path: string): string | undefined {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
    return `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`;
  } catch {
    return undefined; // reading the manifest reports the error
  }
}
