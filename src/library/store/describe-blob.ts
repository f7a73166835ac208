/** The facts of a GGUF in the store; loads the reader of GGUF files. */
import { readPart } from "../../engine/formats/index.ts";
import { blobPath } from "./blobs.ts";
import { describeGguf, type GgufDetails } from "./details.ts";
import type { Digest } from "./digest.ts";

/** Throws if the blob is not a GGUF. */
export async function describeBlob(root: string, digest: Digest): Promise<GgufDetails> {
  return describeGguf((await readPart(blobPath(root, digest), { shard: 0, arrayItemsMax: 0 })).header);
}
