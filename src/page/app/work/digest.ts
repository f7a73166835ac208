/** The SHA-256 of a file of any size, with a few megabytes in memory at a time. */
import { createSHA256 } from "hash-wasm";

const SLICE_BYTES = 8 * 1024 * 1024;

/** In the form `sha256:…`. Throws if the file can no longer be read. */
export async function digestOf(file: Blob, onProgress: (done: number) => void): Promise<string> {
  const hash = await createSHA256();
  for (let at = 0; at < file.size; at += SLICE_BYTES) {
    const slice = file.slice(at, at + SLICE_BYTES);
    hash.update(new Uint8Array(await slice.arrayBuffer()));
    onProgress(Math.min(file.size, at + SLICE_BYTES));
  }
  return `sha256:${hash.digest("hex")}`;
}
