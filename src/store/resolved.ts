/**
 * Models that requests have named, kept while their manifests stay as they are: a request costs one `stat`. Blobs are
 * named by their digests, so what a manifest names does not change under it.
 */
import { statSync } from "node:fs";

/** Models that are kept; each has its small layers with it, some kilobytes. */
const KEPT_MAX = 256;

interface Kept<T> {
  readonly stamp: string;
  readonly value: T;
}

/** Makes a function that reads a manifest anew only where its file was replaced or written to. */
export function makeResolved<T>(): (manifest: string, read: () => Promise<T>) => Promise<T> {
  const kept = new Map<string, Kept<T>>(); // by path, used last at the end
  return async (manifest, read) => {
    const stamp = stampOf(manifest);
    const known = kept.get(manifest);
    kept.delete(manifest);
    // read after the stamp was taken: a change meanwhile has another stamp, and is read by the next request
    const value = stamp !== undefined && known?.stamp === stamp ? known.value : await read();
    if (stamp !== undefined) kept.set(manifest, { stamp, value });
    if (kept.size > KEPT_MAX) kept.delete(kept.keys().next().value!); // not empty
    return value;
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
