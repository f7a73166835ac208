/** Running downloads, one per blob: callers of the same blob share it, and it stops when the last of them leaves. */
import { AppError } from "../../base/index.ts";
import { findBlob } from "../store/blobs.ts";
import type { Digest } from "../store/digest.ts";
import type { BlobSource } from "./blob-source.ts";
import type { BrokenBlobs } from "./broken-blobs.ts";
import { Download } from "./download.ts";
import type { Limits } from "./retry.ts";

const DOWNLOADS_MAX = 32; // concurrent downloads of different blobs; each has a handful of connections

export interface Ticket {
  readonly download: Download;
  /** Call once, after success or failure. If the download stops, this returns once it has stopped. */
  leave(): Promise<void>;
}

export interface Downloads {
  /** Joins the download of a blob, or starts it; undefined if the blob is in the store already. */
  join(source: BlobSource): Promise<Ticket | undefined>;
}

interface Shared {
  readonly download: Download;
  users: number;
}

interface DownloadsParts {
  readonly root: string;
  readonly limits: Limits;
  readonly broken: BrokenBlobs;
}

/** `join` throws `busy` if too many downloads run. */
export function makeDownloads({ root, limits, broken }: DownloadsParts): Downloads {
  const all = new Map<Digest, Shared>();
  const start = (source: BlobSource): Shared => {
    if (all.size >= DOWNLOADS_MAX) throw new AppError("busy", `${all.size} downloads are going on; try again later`);
    const shared: Shared = { download: new Download({ root, source, limits, broken }), users: 0 };
    const end = (): void => void all.delete(source.blob.digest);
    all.set(source.blob.digest, shared);
    shared.download.stored.then(end, end);
    return shared;
  };
  return {
    async join(source) {
      const { digest, size } = source.blob;
      for (;;) {
        const found = await findBlob(root, digest);
        const current = all.get(digest);
        if (!current && found === size) return undefined;
        if (!current) return ticketOf(start(source));
        if (isSame(current.download, source)) return ticketOf(current);
        // The download is stopping, or has another source: waits for its end
        await current.download.stored.catch(() => {});
      }
    },
  };
}

function ticketOf(shared: Shared): Ticket {
  shared.users++;
  return {
    download: shared.download,
    async leave() {
      if (--shared.users > 0) return;
      shared.download.cancel();
      await shared.download.stored.catch(() => {}); // its waiting callers got the error
    },
  };
}

const isSame = (download: Download, { host, blob }: BlobSource): boolean =>
  !download.isCancelled && download.source.host === host && download.total === blob.size;
