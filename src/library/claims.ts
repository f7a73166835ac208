/**
 * The blobs of a model that is being made, which no manifest names yet: what others leave behind at their end may be
 * among them and stays then, and what was made for the model goes at its own end, unless a model has it.
 */
import type { Digest } from "./digest.ts";

export interface Claims {
  /** Call as soon as a blob is there, or just before. @param isNew it was not, before the request */
  add(digest: Digest, isNew: boolean): void;
  /** Holds no others any more: for the moment when a manifest names these. */
  narrow(digests: readonly Digest[]): void;
  end(): Promise<void>;
}

export interface ClaimParts {
  /** Keeps blobs from being deleted, those that are added later too, until the function that it returns is called. */
  readonly hold: (digests: ReadonlySet<Digest>) => () => void;
  /** Deletes those of the blobs that no model refers to. */
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
