/**
 * `HEAD`, `GET` and `POST /api/blobs/:digest`: checks, reads (whole or a range) and uploads a file. An upload is
 * written to the disk as it arrives; the answer is the path to name in a Modelfile.
 */
import { resolve } from "node:path";
import { AppError } from "../../base/index.ts";
import { blobPath, type Digest, findBlob, parseDigest, receiveBlob, touchBlob } from "../../library/index.ts";
import { decoded, received } from "../http/body.ts";
import { byteRangeOf } from "../http/byte-range.ts";
import { contentCoding } from "../http/content-coding.ts";
import type { RouteDeps } from "./deps.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import { get, head, type RouteInput, post } from "./route.ts";

export const blobRoutes = [
  head("/api/blobs/:digest", download, { api: "native", summary: "Whether a file is there", reply: "empty" }),
  get("/api/blobs/:digest", download, { api: "native", summary: "A file, or one range of it", reply: "bytes" }),
  post("/api/blobs/:digest", upload, {
    api: "native",
    summary: "Upload a file",
    body: "bytes",
    reply: "text",
    status: 201,
  }),
];

/** Content with a digest is immutable: a client may cache it for ever. */
const DOWNLOAD_HEADERS = {
  "accept-ranges": "bytes",
  "cache-control": "private, max-age=31536000, immutable",
  "content-type": "application/octet-stream",
  "cross-origin-resource-policy": "same-origin", // for pages that send requests without CORS
};

/**
 * The whole file or the requested range; for HEAD only its size. HEAD looks only in our own store, because a client
 * asks before it creates a model, which takes files only from there. Marks the blob as used, because the client is
 * about to use it.
 */
async function download(deps: RouteDeps, { request }: Exchange, { params }: RouteInput): Promise<Reply> {
  const digest = parseDigest(params["digest"]!);
  const isHead = request.method === "HEAD";
  const found = await findIn(isHead ? [deps.store.root] : [deps.store.root, ...deps.library.others], digest);
  if (!found) throw new AppError("not_found", `blob ${JSON.stringify(digest)} not found`);
  const { root, size } = found;
  const etag = `"${digest}"`;
  const headers = new Headers({ ...DOWNLOAD_HEADERS, etag });
  if (hasTag(request.headers.get("if-none-match"), etag)) return { kind: "file", status: 304, headers };
  if (root === deps.store.root) await touchBlob(root, digest); // other stores are read-only
  const file = Bun.file(blobPath(root, digest));
  if (isHead) return { kind: "file", status: 200, headers, body: file }; // ranges are for GET only
  const condition = request.headers.get("if-range");
  const range = condition === null || condition === etag ? byteRangeOf(request.headers.get("range"), size) : undefined;
  if (range === "unsatisfiable") {
    headers.set("content-range", `bytes */${size}`);
    return { kind: "file", status: 416, headers };
  }
  if (!range) return { kind: "file", status: 200, headers, body: file };
  headers.set("content-range", `bytes ${range.start}-${range.end - 1}/${size}`);
  return { kind: "file", status: 206, headers, body: file.slice(range.start, range.end) };
}

/** The blob in the first of these stores that has it. */
async function findIn(roots: readonly string[], digest: Digest) {
  for (const root of roots) {
    const size = await findBlob(root, digest);
    if (size !== undefined) return { root, size };
  }
  return undefined;
}

const hasTag = (list: string | null, etag: string): boolean =>
  (list ?? "").split(",").some((each) => each.trim().replace(/^W\//, "") === etag || each.trim() === "*");

/** 200 for an existing file, without reading the body; 201 for a new one. */
async function upload({ store, library }: RouteDeps, exchange: Exchange, { params }: RouteInput): Promise<Reply> {
  const expected = parseDigest(params["digest"]!);
  const body = resolve(blobPath(store.root, expected));
  if ((await findBlob(store.root, expected)) !== undefined) {
    await touchBlob(store.root, expected);
    return { kind: "text", body };
  }
  library.claim();
  const { size } = await receiveBlob(store.root, { chunks: released(exchange.request), expected });
  exchange.note({ bytes: size });
  return { kind: "text", body, status: 201 };
}

/**
 * Frees each chunk's memory when the next is requested. Garbage collection would come late: an upload of 1 GB costs 25
 * MB this way, 75 MB without.
 */
async function* released(request: Request): AsyncGenerator<Uint8Array, void, void> {
  if (contentCoding(request.headers) !== undefined) return yield* decoded(request); // its chunks reuse the same memory
  for await (const chunk of received(request)) {
    yield chunk;
    if (chunk.buffer instanceof ArrayBuffer) chunk.buffer.transfer(0);
  }
}
