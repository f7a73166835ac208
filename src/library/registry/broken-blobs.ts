/**
 * Blobs whose content at a registry did not match their digest. Such a blob is not downloaded again for a while, which
 * doubles with each failure: so a repaired registry works soon, and requests do not download the same bytes each time.
 */
import { AppError } from "../../base/index.ts";
import type { Digest } from "../store/digest.ts";

const FIRST_MS = 60_000;
const MAX_MS = 3600_000;
const RECORDS_MAX = 1000;

/** A blob at a registry. */
export interface BlobPlace {
  readonly host: string;
  readonly digest: Digest;
}

export interface BrokenBlobs {
  /** Records content with a wrong digest. @returns the error for it */
  note(place: BlobPlace, found: Digest): AppError;
  /** Records that the content was right. */
  forget(place: BlobPlace): void;
  /** Returns whether the last download failed so. Throws `registry` while the blob may not be downloaded. */
  check(place: BlobPlace): boolean;
}

export function makeBrokenBlobs(now: () => number): BrokenBlobs {
  const records = new Map<string, { failures: number; untilMs: number }>();
  const keyOf = ({ host, digest }: BlobPlace): string => `${host} ${digest}`;
  return {
    note(place, found) {
      const key = keyOf(place);
      const failures = (records.get(key)?.failures ?? 0) + 1;
      records.delete(key); // moves the record to the end: the oldest comes first
      records.set(key, { failures, untilMs: now() + Math.min(FIRST_MS * 2 ** (failures - 1), MAX_MS) });
      if (records.size > RECORDS_MAX) records.delete(records.keys().next().value!); // not empty
      const { digest } = place;
      return new AppError("registry", `digest mismatch, file must be downloaded again: want ${digest}, got ${found}`);
    },
    forget: (place) => void records.delete(keyOf(place)),
    check(place) {
      const record = records.get(keyOf(place));
      const retryAfterMs = (record?.untilMs ?? 0) - now();
      if (!record || retryAfterMs <= 0) return record !== undefined;
      const times = record.failures === 1 ? "once" : `${record.failures} times`;
      const again = `it is asked for again in ${Math.ceil(retryAfterMs / 1000)} s`;
      throw new AppError(
        "registry",
        `${place.host}: blob ${place.digest} came ${times} with other content than its digest says; ${again}`,
        { retryAfterMs },
      );
    },
  };
}
