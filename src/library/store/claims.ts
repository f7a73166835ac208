/**
 * The blobs of a model in creation, which no manifest names yet. Claims protect them from deletion by other requests;
 * when the creation ends, its new blobs that no model uses are deleted.
 */
import type { Digest } from "./digest.ts";

export interface Claims {
  /** Call just before or after a blob appears. @param isNew the blob did not exist before the request */
  add(digest: Digest, isNew: boolean): void;
  /** Releases all other blobs: call when a manifest names these. */
  narrow(digests: readonly Digest[]): void;
  end(): Promise<void>;
}

export interface ClaimParts {
  /** Protects blobs from deletion, including those added later, until the returned function is called. */
  readonly hold: (digests: ReadonlySet<Digest>) => () => void;
  /** Deletes the given blobs that no model refers to. */
  readonly discard: (digests: readonly Digest[]) => Promise<void>;
}

export function makeClaims({ hold, discard }: ClaimParts): Claims {
  const used = new Set<Digest>();
  const made = new Set<Digest>();
  const release = hold(used);
  return {
    add(digest, isNew) {
      used.add(digest);
      if (isNew) made.add(digest);
    },
    narrow(digests) {
      for (const digest of used) if (!digests.includes(digest)) used.delete(digest);
    },
    async end() {
      release();
      if (made.size > 0) await discard([...made]);
    },
  };
}
