/**
 * Models that requests have named, kept while their manifests stay as they are: a request costs one `stat`. Blobs are
 * named by their digests, so what a manifest names does not change under it.
 */
import { statSync } from "node:fs";

interface Kept<T> {
  readonly stamp: string;
  readonly value: T;
}

export interface Resolved<T> {
  /** What was read of a manifest; undefined where that was never, or its file was replaced or written to since. */
  known(manifest: string): T | undefined;
  /** Reads a manifest, and remembers what it says. */
  read(manifest: string, read: () => Promise<T>): Promise<T>;
}

/** @param keptMax manifests at most; those that were asked for last stay */
export function makeResolved<T>(keptMax: number): Resolved<T> {
  const kept = new Map<string, Kept<T>>(); // by path, used last at the end
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
      const stamp = stampOf(manifest); // first: a change meanwhile has another, and is read by the next request
      const value = await read();
      if (stamp === undefined) kept.delete(manifest);
      else keep(manifest, { stamp, value });
      return value;
    },
  };
}

/** What changes when a file does: a file that is written anew under a temporary name has another inode. */
function stampOf(path: string): string | undefined {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
    return `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`;
  } catch {
    return undefined; // reading it says why
  }
}
