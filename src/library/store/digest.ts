/**
 * Digests name content: `sha256:<64 hex>`. Only a parsed digest may become part of a path.
 */
import { createReadStream } from "node:fs";
import { AppError, checkNotCancelled } from "../../base/index.ts";

declare const brand: unique symbol;

/** `sha256:` and 64 lower-case hex digits. */
export type Digest = string & { readonly [brand]: true };

/** Accepts `sha256:` or `sha256-`, and hex digits of either case. Throws `bad_request`. */
export function parseDigest(text: string): Digest {
  const hex = /^sha256[:-]([0-9a-f]{64})$/i.exec(text)?.[1];
  if (hex === undefined) throw new AppError("bad_request", "invalid digest format");
  return `sha256:${hex.toLowerCase()}` as Digest; // the only cast to Digest
}

/** The 64 hex digits. */
export function hexOf(digest: Digest): string {
  return digest.slice("sha256:".length);
}

/** The name of a blob's file. */
export function blobName(digest: Digest): string {
  return `sha256-${hexOf(digest)}`;
}

export function digestOf(bytes: Uint8Array): Digest {
  return parseDigest(`sha256:${new Bun.CryptoHasher("sha256").update(bytes).digest("hex")}`);
}

/** Reads the file in pieces; other work runs between them. Throws `cancelled` once the signal is aborted. */
export async function digestOfFile(path: string, signal?: AbortSignal): Promise<Digest> {
  const hasher = new Bun.CryptoHasher("sha256");
  for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024 })) {
    checkNotCancelled(signal);
    hasher.update(chunk as Uint8Array);
  }
  return parseDigest(`sha256:${hasher.digest("hex")}`);
}
