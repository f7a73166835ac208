/**
 * Pulls a model: its manifest, the missing blobs, and then the manifest into place, byte for byte. If it stops at any
 * point, the models of the store are unchanged, and received bytes are kept for the next attempt.
 */
import { AppError, checkNotCancelled } from "../../base/index.ts";
import { findBlob } from "../store/blobs.ts";
import type { Progress } from "../create/creation.ts";
import type { Digest } from "../store/digest.ts";
import type { Library } from "../create/library.ts";
import {
  blobsOf,
  MANIFEST_BYTES_MAX,
  MANIFEST_TYPE,
  parseManifest,
  type Layer,
  type Manifest,
} from "../store/manifest.ts";
import { fullName } from "../store/name.ts";
import { digestsOf } from "../store/references.ts";
import { repositoryUrl } from "./address.ts";
import { makeBlobSource } from "./blob-source.ts";
import type { BrokenBlobs } from "./broken-blobs.ts";
import type { RegistryClient } from "./client.ts";
import type { Download } from "./download.ts";
import type { Downloads, Ticket } from "./downloads.ts";
import type { Runs } from "../create/architecture.ts";
import { checkOffered } from "./offered.ts";
import { pause } from "./retry.ts";

const PROGRESS_MS = 60;

interface PullParts {
  readonly library: Pick<Library, "root" | "claim" | "adopt" | "sweep" | "hold">;
  /** Returns whether an architecture can run here; absent: all can. */
  readonly runs?: Runs | undefined;
  readonly downloads: Downloads;
  readonly broken: BrokenBlobs;
  /** Called with the number of bytes to come, once the registry has them and before they are downloaded. */
  readonly makeRoom?: ((bytes: number) => Promise<void>) | undefined;
}

/**
 * Throws `unsupported` before the first large blob, `registry`, `storage`, `busy`, `conflict` while another server
 * changes the store, and `cancelled` once the client's signal is aborted.
 */
export async function* pullModel(
  { library, downloads, broken, runs, makeRoom }: PullParts,
  client: RegistryClient,
): AsyncGenerator<Progress, void, void> {
  library.claim();
  yield { status: "pulling manifest" };
  const { bytes, manifest } = await fetchManifest(client);
  const { name } = client.address;
  const release = library.hold(new Set(digestsOf(manifest)));
  const tickets: Ticket[] = [];
  try {
    const missing = await missingBlobs(library.root, manifest);
    const { checkRunnable } = await import("./runnable.ts"); // reads headers of model files
    await checkRunnable(client, { manifest, missing, runs });
    if (makeRoom) {
      await checkOffered(client, { missing, broken });
      await makeRoom(missing.reduce((sum, { size }) => sum + size, 0));
    }
    for (const blob of blobsOf(manifest)) {
      const ticket = await downloads.join(makeBlobSource(client, blob));
      if (ticket) tickets.push(ticket);
      yield* ticket ? follow(ticket.download, { all: tickets, client }) : [progressOf(blob, blob.size)];
    }
    yield { status: "verifying sha256 digest" };
    for (const { download } of tickets) await untilStored(download, client.signal);
    yield { status: "writing manifest" };
    const before = await library.adopt(name, bytes);
    const swept = library.sweep(before); // started now: a client that stops reading does not prevent it
    yield { status: "removing any unused layers" };
    await swept;
    yield { status: "success" };
  } finally {
    await Promise.all(tickets.map((ticket) => ticket.leave()));
    release();
  }
}

/** Yields one value: whether the manifest exists. Throws `registry` if the answer is unclear. */
export async function* hasManifest(client: RegistryClient): AsyncGenerator<boolean, void, void> {
  try {
    await fetchManifest(client);
    yield true;
  } catch (error) {
    if (!(error instanceof AppError) || error.cause !== 404) throw error;
    yield false;
  }
}

async function fetchManifest(client: RegistryClient): Promise<{ bytes: Uint8Array; manifest: Manifest }> {
  const { address } = client;
  const url = repositoryUrl(address, `manifests/${address.name.tag}`);
  const { body: bytes, elsewhere } = await client.exchange(
    { method: "GET", url, headers: { accept: MANIFEST_TYPE } },
    {
      what: "pull model manifest",
      bytesMax: MANIFEST_BYTES_MAX,
      messages: { 404: "pull model manifest: file does not exist" },
    },
  );
  try {
    return { bytes, manifest: parseManifest(bytes, fullName(address.name)) };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const isPage = /^\s*</.test(new TextDecoder().decode(bytes.subarray(0, 64)));
    const page = `${address.base.host} answers with a web page: is it a registry, or is a login in between?`;
    const own = isPage ? page : error.message;
    const message = elsewhere === undefined ? own : `${elsewhere} has no manifest there`;
    throw new AppError("registry", `pull model manifest: ${message}`, { cause: error });
  }
}

async function missingBlobs(root: string, manifest: Manifest): Promise<Layer[]> {
  const missing: Layer[] = [];
  for (const blob of blobsOf(manifest)) if ((await findBlob(root, blob.digest)) !== blob.size) missing.push(blob);
  return missing;
}

/**
 * Yields progress until all bytes of a download have arrived. Throws as soon as one of this pull's downloads has
 * failed.
 */
async function* follow(
  download: Download,
  { all, client }: { all: readonly Ticket[]; client: RegistryClient },
): AsyncGenerator<Progress, void, void> {
  let shown: number | undefined;
  for (let ms = 1; ; ms = Math.min(2 * ms, PROGRESS_MS)) {
    const isDone = download.isReceived;
    for (const ticket of all) ticket.download.check();
    checkNotCancelled(client.signal);
    const { completed } = download;
    if (completed !== undefined && completed !== shown) yield progressOf(download.source.blob, (shown = completed));
    if (isDone) return;
    await pause(ms, client.signal); // short at first: most blobs are small
  }
}

async function untilStored(download: Download, signal: AbortSignal): Promise<void> {
  for (let ms = 1; !download.isStored; ms = Math.min(2 * ms, PROGRESS_MS)) {
    download.check();
    checkNotCancelled(signal);
    await pause(ms, signal);
  }
}

function progressOf({ digest, size }: { digest: Digest; size: number }, completed: number): Progress {
  return { status: `downloading ${digest}`, digest, total: size, ...(completed > 0 ? { completed } : {}) };
}
