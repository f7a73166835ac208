/**
 * Blobs: content under its digest, `blobs/sha256-<hex>`. A blob that exists is complete, for it got its name last.
 */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { blobName, digestOf, digestOfFile, type Digest } from "./digest.ts";
import { copyBytes, writeBytes, writeDurably } from "./durable.ts";

/** Where content went. */
export interface Blob {
  readonly digest: Digest;
  /** Bytes. */
  readonly size: number;
}

export function blobPath(root: string, digest: Digest): string {
  return join(root, "blobs", blobName(digest));
}

/** Bytes of a blob, or undefined where there is none. */
export async function findBlob(root: string, digest: Digest): Promise<number | undefined> {
  try {
    const found = await stat(blobPath(root, digest));
    return found.isFile() ? found.size : undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined; // node:fs throws nothing else
    throw error;
  }
}

export async function writeBlob(root: string, bytes: Uint8Array): Promise<Blob> {
  const digest = digestOf(bytes);
  if ((await findBlob(root, digest)) !== bytes.length) {
    await writeDurably(blobPath(root, digest), (temporary) => writeBytes(temporary, bytes));
  }
  return { digest, size: bytes.length };
}

/** Copies a file into the store. What is hashed is the copy, so a file that changes meanwhile cannot spoil the blob. */
export async function importBlob(root: string, path: string): Promise<Blob> {
  const { size } = await stat(path);
  const digest = await digestOfFile(path);
  if ((await findBlob(root, digest)) === size) return { digest, size };
  let blob: Blob = { digest, size };
  await writeDurably(blobPath(root, digest), async (temporary) => {
    await copyBytes({ from: path, to: temporary });
    blob = { digest: await digestOfFile(temporary), size: (await stat(temporary)).size };
    return blobPath(root, blob.digest);
  });
  return blob;
}
