/**
 * Blobs: content under its digest, `blobs/sha256-<hex>`. A blob that exists is complete, because it gets its name last.
 */
import { chmod, open, stat } from "node:fs/promises";
import { join } from "node:path";
import { AppError, assert, inBlocks } from "../../base/index.ts";
import { blobName, digestOf, digestOfFile, parseDigest, type Digest } from "./digest.ts";
import { copyBytes, reading, writeBytes, writeChunks, writeDurably } from "../../base/system.ts";

export interface Blob {
  readonly digest: Digest;
  /** Bytes. */
  readonly size: number;
}

export function blobPath(root: string, digest: Digest): string {
  return join(root, "blobs", blobName(digest));
}

/** Bytes of a blob; undefined if it does not exist. */
export async function findBlob(root: string, digest: Digest): Promise<number | undefined> {
  try {
    const found = await stat(blobPath(root, digest));
    return found.isFile() ? found.size : undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined; // node:fs throws errors with a code
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

/**
 * Copies a file into the store. The copy is hashed, so a concurrent change of the file cannot corrupt the blob. Throws
 * `not_found`, `bad_file` if it cannot be read, and `storage`.
 */
export async function importBlob(root: string, path: string): Promise<Blob> {
  const { size } = await reading(path, stat(path));
  const digest = await reading(path, digestOfFile(path));
  if ((await findBlob(root, digest)) === size) return { digest, size };
  let blob: Blob = { digest, size };
  await writeDurably(blobPath(root, digest), async (temporary) => {
    await copyBytes({ from: path, to: temporary });
    blob = { digest: await digestOfFile(temporary), size: (await stat(temporary)).size };
    return blobPath(root, blob.digest);
  });
  return blob;
}

/**
 * Streams content into the store and hashes it on the way; at most one block is in memory.
 * @param expected content of any other digest is refused
 * Throws `bad_request` on a mismatch, `storage`, and the errors of `chunks`; then no file is left.
 */
export async function receiveBlob(
  root: string,
  { chunks, expected }: { chunks: AsyncIterable<Uint8Array>; expected?: Digest },
): Promise<Blob> {
  const hasher = new Bun.CryptoHasher("sha256");
  let blob: Blob | undefined;
  await writeDurably(join(root, "blobs", "received"), async (temporary) => {
    await using file = await open(temporary, "wx");
    const size = await writeChunks(file, inBlocks(hashed(chunks, hasher)));
    blob = { digest: parseDigest(`sha256:${hasher.digest("hex")}`), size };
    if (expected !== undefined && blob.digest !== expected) {
      throw new AppError("bad_request", `digest mismatch, expected "${expected}", got "${blob.digest}"`);
    }
    return blobPath(root, blob.digest);
  });
  assert(blob, "a blob was written without being received");
  return blob;
}

async function* hashed(
  chunks: AsyncIterable<Uint8Array>,
  hasher: Bun.CryptoHasher,
): AsyncGenerator<Uint8Array, void, void> {
  for await (const chunk of chunks) {
    hasher.update(chunk);
    yield chunk;
  }
}

/**
 * Refreshes the ctime (chmod to the same mode), so that pruning sees the blob as used; a read-only store is left alone.
 * The mtime stays: it shows runners that the content is unchanged.
 */
export async function touchBlob(root: string, digest: Digest): Promise<void> {
  const path = blobPath(root, digest);
  await stat(path)
    .then(({ mode }) => chmod(path, mode))
    .catch(() => {});
}
