/**
 * Synchronous reading of a page's files in its Worker, as the engine needs it. The page's own storage (OPFS) is best;
 * ranges of a URL are the fallback without storage or room; small models fit in memory.
 */
import { AppError, assert, messageOf } from "../../base/index.ts";
import { MODELS_FOLDER, pageStorage, type AccessHandle } from "./storage-api.ts";
import { type ByteSource, memorySource } from "../../engine/portable.ts";

/** The place of a file. */
export type PageFile =
  | { readonly kind: "memory"; readonly bytes: Uint8Array }
  /** On a server that supports ranges. */
  | { readonly kind: "url"; readonly url: string; readonly headers?: Readonly<Record<string, string>> }
  /** A name in the folder of models, see `storage.ts`. */
  | { readonly kind: "stored"; readonly name: string };

/** Globals of Workers that the library of types lacks here. */
declare const XMLHttpRequest: new () => {
  responseType: "arraybuffer";
  readonly response: unknown;
  readonly status: number;
  open(method: string, url: string, isAsync: false): void;
  setRequestHeader(name: string, value: string): void;
  getResponseHeader(name: string): string | null;
  send(): void;
};
type SyncRequest = InstanceType<typeof XMLHttpRequest>;

/** Opens a file. Throws `not_found`, or `bad_file` if it cannot be read. */
export async function openPageFile(file: PageFile): Promise<ByteSource> {
  switch (file.kind) {
    case "memory":
      return memorySource(file.bytes);
    case "url":
      return urlSource(file.url, file.headers ?? {});
    case "stored":
      return storedSource(file.name);
    default:
      return file satisfies never;
  }
}

async function storedSource(name: string): Promise<ByteSource> {
  const handle = await openHandle(name).catch((error: unknown) => {
    const isMissing = error instanceof DOMException && error.name === "NotFoundError";
    throw new AppError(isMissing ? "not_found" : "bad_file", `${name}: ${messageOf(error)}`, { cause: error });
  });
  return {
    byteLength: handle.getSize(),
    copies: true,
    view(offset, length) {
      const bytes = new Uint8Array(length);
      const count = handle.read(bytes, { at: offset });
      if (count < length) throw new AppError("bad_file", `${name}: the file ended while it was read`);
      return bytes;
    },
    close: () => handle.close(),
  };
}

/** Read-only, so that two tabs can open it; exclusive in browsers without modes. */
async function openHandle(name: string): Promise<AccessHandle> {
  const folder = await (await pageStorage().getDirectory()).getDirectoryHandle(MODELS_FOLDER);
  return (await folder.getFileHandle(name)).createSyncAccessHandle({ mode: "read-only" });
}

function urlSource(url: string, headers: Readonly<Record<string, string>>): ByteSource {
  return {
    byteLength: sizeOf(url, headers),
    copies: true,
    view(offset, length) {
      if (length === 0) return new Uint8Array(0);
      const range = `bytes=${offset}-${offset + length - 1}`;
      const request = ask("GET", url, { ...headers, range });
      assert(request.response instanceof ArrayBuffer, "a request for bytes gives bytes");
      const bytes = new Uint8Array(request.response);
      if (request.status === 206 && bytes.length === length) return bytes;
      const found = `status ${request.status} and ${bytes.length} bytes`;
      throw new AppError("bad_file", `${url}: ${range}: expected status 206 and ${length} bytes, got ${found}`);
    },
    close() {},
  };
}

function sizeOf(url: string, headers: Readonly<Record<string, string>>): number {
  const request = ask("HEAD", url, headers);
  if (request.status === 404) throw new AppError("not_found", `${url}: no such file`);
  const size = Number(request.getResponseHeader("content-length") ?? NaN);
  if (request.status === 200 && Number.isSafeInteger(size)) return size;
  throw new AppError("bad_file", `${url}: expected status 200 and a length, got status ${request.status}`);
}

/** A synchronous request. */
function ask(method: string, url: string, headers: Readonly<Record<string, string>>): SyncRequest {
  const request = new XMLHttpRequest();
  request.open(method, url, false);
  request.responseType = "arraybuffer";
  for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
  try {
    request.send();
  } catch (error) {
    throw new AppError("bad_file", `${url}: ${messageOf(error)}`, { cause: error });
  }
  return request;
}
