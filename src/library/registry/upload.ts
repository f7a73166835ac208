/**
 * Uploads one blob to a registry: skipped if the registry has it, mounted from another repository of the same registry
 * if possible, else sent in chunks. A registry takes chunks itself or redirects each.
 */
import { open, type FileHandle } from "node:fs/promises";
import { AppError, checkNotCancelled, messageOf } from "../../base/index.ts";
import { blobPath } from "../store/blobs.ts";
import type { Layer } from "../store/manifest.ts";
import { repositoryUrl, type Address } from "./address.ts";
import { failureOf, isRedirect, locationOf, type RegistryClient } from "./client.ts";
import type { FindMount } from "./mounts.ts";
import { retry, Transient } from "./retry.ts";
import { StallWatch } from "./stall-watch.ts";

const CONTENT_TYPE = "application/octet-stream";
const UPLOAD_LOCATION = "docker-upload-location";
const READ_BYTES = 1024 * 1024;
const ANSWER_BYTES_MAX = 64 * 1024;
const RESTARTS_MAX = 3;
/** A chunk that is refused as too large is halved, down to this size. */
const CHUNK_BYTES_MIN = 16 * 1024;
/** Statuses of HEAD that do not confirm the blob: it is sent. */
const NOT_THERE = [404, 405, 501];
/** Names of repositories in the distribution project's grammar. */
const REPOSITORY = /^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*\/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*$/;
/** Statuses of a registry that has lost the upload, or a part of it. */
const LOST = [400, 404, 409, 416];

interface UploadParts {
  readonly root: string;
  readonly client: RegistryClient;
  readonly blob: Layer;
  readonly findMount: FindMount;
  /** Called with the bytes that the registry has; decreases if some must be sent again. */
  readonly onProgress: (completed: number) => void;
  /** Tries for asking whether the registry has the blob; absent: the usual number. */
  readonly tries?: number | undefined;
}

interface Upload extends UploadParts {
  readonly file: FileHandle;
}

interface Session {
  /** URL for the next chunk. */
  readonly location: URL;
  readonly offset: number;
  /** Maximum bytes of the next chunk: a proxy may take less than the registry. */
  readonly chunkBytes: number;
  /** MD5 of every chunk so far: object stores that take chunks require the digest at the end. */
  readonly chunks: readonly Uint8Array[];
}

/** The registry has lost the upload, which starts over. Never leaves this file. */
class UploadLost extends Error {}

/** A proxy refuses a chunk of this size. */
class ChunkTooLarge extends AppError {}

/** Throws `registry`, `bad_file` if the blob cannot be read, and `cancelled`. */
export async function uploadBlob(parts: UploadParts): Promise<void> {
  const { root, client, blob, findMount, onProgress, tries } = parts;
  if (await isThere(client, blob, tries)) return onProgress(blob.size);
  const mountFrom = await findMount(blob);
  await using file = await openBlob(blobPath(root, blob.digest));
  for (let restarts = 0; ; restarts++) {
    const location = await begin(client, { blob, mountFrom: restarts === 0 ? mountFrom : undefined });
    if (!location) return onProgress(blob.size);
    try {
      const { chunkBytes } = client.limits;
      return await sendAll({ ...parts, file }, { location, offset: 0, chunkBytes, chunks: [] });
    } catch (error) {
      if (!(error instanceof UploadLost)) throw error;
      if (restarts >= RESTARTS_MAX) throw new AppError("registry", error.message, { cause: error });
    }
  }
}

async function openBlob(path: string): Promise<FileHandle> {
  try {
    return await open(path, "r");
  } catch (error) {
    throw new AppError("bad_file", `cannot read the blob: ${messageOf(error)}`, { cause: error });
  }
}

async function isThere(client: RegistryClient, { digest }: Layer, tries = client.limits.tries): Promise<boolean> {
  const url = repositoryUrl(client.address, `blobs/${digest}`);
  const ask = async (): Promise<boolean> => {
    using watch = watchFor(client);
    const response = await client.send({ method: "HEAD", url }, watch);
    if (response.ok || isRedirect(response.status)) return true; // a redirect to the content
    if (NOT_THERE.includes(response.status)) return false;
    throw await failureOf(response, { what: `blob ${digest}`, watch, address: client.address });
  };
  return retry(ask, { limits: { ...client.limits, tries }, signal: client.signal });
}

/** The upload location; undefined if the registry mounted the blob. */
async function begin(
  client: RegistryClient,
  { blob, mountFrom }: { blob: Layer; mountFrom: string | undefined },
): Promise<URL | undefined> {
  const url = repositoryUrl(client.address, "blobs/uploads/");
  if (mountFrom !== undefined) {
    url.searchParams.set("mount", blob.digest);
    url.searchParams.set("from", mountFrom);
  }
  const what = `upload of ${blob.digest}`;
  const asked = client.exchange(
    { method: "POST", url, headers: { "content-length": "0" } },
    { what, bytesMax: ANSWER_BYTES_MAX, messages: refusals(client.address) },
  );
  if (mountFrom !== undefined && !(await succeeds(asked, client))) {
    return begin(client, { blob, mountFrom: undefined }); // the registry may not read there, or does not support mounts
  }
  const { status, headers } = await asked;
  return status === 201 ? undefined : nextLocation(headers, { from: url, address: client.address });
}

/** Throws `cancelled`. */
async function succeeds(exchange: Promise<unknown>, { signal }: RegistryClient): Promise<boolean> {
  const isDone = await exchange.then(
    () => true,
    () => false,
  );
  checkNotCancelled(signal);
  return isDone;
}

/** Messages for 404 on a name outside the registry's grammar; some registries accept more names. */
function refusals({ base, name: { namespace, model } }: Address): Readonly<Record<number, string>> {
  if (REPOSITORY.test(`${namespace}/${model}`)) return {};
  const rule = "lowercase letters and digits, single '.', '_' or '-' between them";
  const what = `${base.host} takes no model '${namespace}/${model}': registries expect names of ${rule}`;
  return { 404: `${what}; give it such a name with 'hearth cp', and push that` };
}

/** `Docker-Upload-Location` if present: `Location` may be rewritten on its way. */
function nextLocation(headers: Headers, { from, address }: { from: URL; address: Address }): URL {
  const header = headers.has(UPLOAD_LOCATION) ? UPLOAD_LOCATION : "location";
  return locationOf(headers, { from, address, header });
}

const hasLocation = (headers: Headers): boolean => headers.has(UPLOAD_LOCATION) || headers.has("location");

async function sendAll(upload: Upload, start: Session): Promise<void> {
  const { client, blob, onProgress } = upload;
  let session = start;
  while (session.offset < blob.size) session = await sendChunk(upload, session);
  const url = new URL(session.location);
  const tags = new Bun.CryptoHasher("md5").update(Buffer.concat(session.chunks)).digest("hex");
  url.searchParams.set("digest", blob.digest);
  url.searchParams.set("etag", `${tags}-${session.chunks.length}`);
  try {
    await client.exchange(
      { method: "PUT", url, headers: { "content-length": "0", "content-type": CONTENT_TYPE } },
      { what: `upload of ${blob.digest}`, bytesMax: ANSWER_BYTES_MAX },
    );
  } catch (error) {
    checkNotCancelled(client.signal);
    if (!(await isThere(client, blob))) throw new UploadLost(messageOf(error), { cause: error });
  } // else an earlier try had arrived, and only its answer was lost
  onProgress(blob.size);
}

/**
 * If a chunk fails half-way, asks the registry how many bytes arrived. A chunk that is too large leaves the session
 * unchanged, for smaller ones.
 */
async function sendChunk(upload: Upload, session: Session): Promise<Session> {
  const { client, blob } = upload;
  const end = Math.min(session.offset + session.chunkBytes, blob.size);
  let at = session;
  const send = async (): Promise<Session> => {
    const redirect = await patch(upload, at, end).catch(async (error: unknown) => {
      if (error instanceof Transient) at = await askOffset(upload, at, end);
      throw error;
    });
    if (!("target" in redirect)) return redirect;
    const md5 = await put(upload, { target: redirect.target, from: at.offset, to: end });
    return { ...at, location: redirect.next, offset: end, chunks: [...at.chunks, md5] };
  };
  return retry(async () => (at.offset >= end ? at : send()), {
    limits: client.limits,
    signal: client.signal,
    progress: () => at.offset,
  }).catch((error: unknown) => {
    const half = Math.ceil((end - at.offset) / 2);
    if (!(error instanceof ChunkTooLarge) || half < CHUNK_BYTES_MIN) throw error;
    return { ...at, chunkBytes: half };
  });
}

/** Offers the registry a chunk, which it accepts or redirects. */
async function patch(upload: Upload, session: Session, to: number): Promise<Session | { target: URL; next: URL }> {
  const { client, blob } = upload;
  const { location: url, offset: from, chunks } = session;
  using watch = watchFor(client);
  const content = makeContent(upload, { from, to, watch });
  const headers = { ...content.headers, "content-range": `${from}-${to - 1}`, "x-redirect-uploads": "1" };
  const response = await client.send({ method: "PATCH", url, headers, body: content.open }, watch);
  const at = { from: url, address: client.address };
  if (isRedirect(response.status)) {
    const next = response.headers.has(UPLOAD_LOCATION) ? nextLocation(response.headers, at) : url;
    return { target: locationOf(response.headers, at), next };
  }
  if (!response.ok) throw await chunkFailure(response, { blob, watch, address: client.address });
  return { ...session, location: nextLocation(response.headers, at), offset: to, chunks: [...chunks, content.md5()] };
}

/** Sends a chunk to its target. @returns its MD5 */
async function put(upload: Upload, { target, from, to }: { target: URL; from: number; to: number }) {
  using watch = watchFor(upload.client);
  const content = makeContent(upload, { from, to, watch });
  const { headers, open: body } = content;
  const { client, blob } = upload;
  const response = await client.send({ method: "PUT", url: target, headers, body }, watch);
  if (!response.ok) throw await refusalOf(response, { blob, watch, address: client.address });
  return content.md5();
}

interface Refused {
  readonly blob: Layer;
  readonly watch: StallWatch;
  readonly address: Address;
}

async function refusalOf(response: Response, { blob, watch, address }: Refused): Promise<Error> {
  const error = await failureOf(response, { what: `upload of ${blob.digest}`, watch, address });
  return response.status === 413 ? new ChunkTooLarge("registry", error.message, { cause: error }) : error;
}

async function chunkFailure(response: Response, refused: Refused): Promise<Error> {
  const error = await refusalOf(response, refused);
  return LOST.includes(response.status) ? new UploadLost(error.message, { cause: error }) : error;
}

/** The registry's offset after a broken chunk. If it is unknown, the whole chunk is sent again. */
async function askOffset({ client }: Upload, session: Session, end: number): Promise<Session> {
  const { location: url } = session;
  using watch = watchFor(client);
  const response = await client.send({ method: "GET", url }, watch).catch(() => undefined); // the chunk's error counts
  const last = Number(/^(?:bytes=)?0-(\d+)$/.exec(response?.headers.get("range") ?? "")?.[1] ?? 0);
  // `0-0` also means an empty upload
  if (!response?.ok || last === 0 || last < session.offset || last >= end) return session;
  const address = client.address;
  const location = hasLocation(response.headers) ? nextLocation(response.headers, { from: url, address }) : url;
  return { ...session, location, offset: last + 1 };
}

const watchFor = ({ limits, signal }: RegistryClient): StallWatch =>
  new StallWatch({ stallMs: limits.stallMs, wanted: signal });

/** Bytes of the blob as a request body. */
function makeContent(upload: Upload, { from, to, watch }: { from: number; to: number; watch: StallWatch }) {
  const hasher = new Bun.CryptoHasher("md5");
  let at = from;
  const read = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    const buffer = new Uint8Array(Math.min(READ_BYTES, to - at));
    const { bytesRead } = await upload.file.read(buffer, 0, buffer.length, at);
    if (bytesRead === 0) throw new AppError("bad_file", `${upload.blob.digest}: expected ${to} bytes, found ${at}`);
    const piece = buffer.subarray(0, bytesRead);
    hasher.update(piece);
    at += bytesRead;
    watch.moved();
    upload.onProgress(at);
    controller.enqueue(piece);
    if (at === to) controller.close();
  };
  return {
    headers: { "content-length": String(to - from), "content-type": CONTENT_TYPE },
    /** May be called again, after a refused token. */
    open: () => {
      at = from;
      hasher.digest(); // resets the hash
      return new ReadableStream<Uint8Array>({ pull: read }, { highWaterMark: 0 });
    },
    md5: (): Uint8Array => hasher.digest(),
  };
}
