/**
 * Models in a page's storage (OPFS): downloaded in ranges, and resumed by any tab. A file gets its final name when it
 * is complete. Runs in Workers, which can write synchronously.
 */
import { AppError, messageOf } from "../../base/index.ts";
import { MODELS_FOLDER, PARTIAL, pageStorage, type AccessHandle, type FolderHandle } from "./storage-api.ts";

/** Bytes of one request. */
const PIECE_BYTES = 4 * 2 ** 20;
const NAME = /^[\w.-]{1,200}$/;

export interface Download {
  /** The file's name here. It must identify the bytes: a digest is best. */
  readonly name: string;
  /** On a server that supports ranges. */
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The used part of the Web Locks API, which the library of types lacks here. */
interface Locks {
  /** `ifAvailable`: `work` gets null if another holder has it. */
  request<T>(name: string, options: { readonly ifAvailable: boolean }, work: (lock: unknown) => Promise<T>): Promise<T>;
}

export interface StoreHearer {
  onProgress(bytes: { readonly done: number; readonly total: number }): void;
  /** Called when another tab is storing it, and this one waits. */
  onBusy(): void;
}

/**
 * Downloads a model unless it is stored; waits while another tab downloads it. Throws `upstream` if the server fails,
 * `too_large` without room, `storage` if writing fails.
 */
export async function storeModel(download: Download, hearer: StoreHearer): Promise<void> {
  const { name } = download;
  if (!NAME.test(name)) throw new AppError("bad_request", `name of a stored model: expected ${NAME}, got '${name}'`);
  const { locks } = navigator as unknown as { locks: Locks };
  const lock = `${MODELS_FOLDER}/${name}`;
  const bring = async (held: unknown): Promise<boolean> => {
    if (!held) return false;
    await bringModel(download, hearer);
    return true;
  };
  if (await locks.request(lock, { ifAvailable: true }, bring)) return;
  hearer.onBusy();
  await locks.request(lock, { ifAvailable: false }, bring);
}

async function bringModel({ name, url, headers = {} }: Download, { onProgress }: StoreHearer): Promise<void> {
  const folder = await (await pageStorage().getDirectory()).getDirectoryHandle(MODELS_FOLDER, { create: true });
  if (await isThere(folder, name)) return;
  const total = await sizeOf(url, headers);
  const file = await folder.getFileHandle(`${name}${PARTIAL}`, { create: true });
  const handle = await file.createSyncAccessHandle();
  try {
    if (handle.getSize() > total) handle.truncate(0); // the partial file belongs to another file
    await checkRoom(name, total - handle.getSize());
    await fill(handle, { url, headers, total, onProgress });
    handle.flush();
  } finally {
    handle.close();
  }
  await file.move(name);
}

/** Deletes a model, complete or partial. */
export async function removeModel(name: string): Promise<void> {
  const folder = await (await pageStorage().getDirectory()).getDirectoryHandle(MODELS_FOLDER, { create: true });
  for (const each of [name, `${name}${PARTIAL}`]) {
    if (await isThere(folder, each)) await folder.removeEntry(each);
  }
}

export async function storedModels(): Promise<string[]> {
  const folder = await (await pageStorage().getDirectory()).getDirectoryHandle(MODELS_FOLDER, { create: true });
  const names: string[] = [];
  for await (const name of folder.keys()) if (!name.endsWith(PARTIAL)) names.push(name);
  return names.toSorted();
}

async function isThere(folder: FolderHandle, name: string): Promise<boolean> {
  return folder.getFileHandle(name).then(
    () => true,
    () => false,
  );
}

async function checkRoom(name: string, needed: number): Promise<void> {
  const { quota = Infinity, usage = 0 } = await pageStorage().estimate();
  if (needed <= quota - usage) return;
  const text = `${name}: ${needed} bytes are needed, this page's storage has room for ${quota - usage}`;
  throw new AppError("too_large", `${text}: remove a stored model, or let the model be read from the server`);
}

async function sizeOf(url: string, headers: Readonly<Record<string, string>>): Promise<number> {
  const response = await ask(url, { method: "HEAD", headers });
  const size = Number(response.headers.get("content-length") ?? NaN);
  if (response.ok && Number.isSafeInteger(size)) return size;
  throw new AppError("upstream", `${url}: expected status 200 and a length, got status ${response.status}`);
}

async function fill(
  handle: AccessHandle,
  from: {
    readonly url: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly total: number;
    readonly onProgress: (bytes: { done: number; total: number }) => void;
  },
): Promise<void> {
  const { url, headers, total, onProgress } = from;
  for (let done = handle.getSize(); done < total;) {
    onProgress({ done, total });
    const length = Math.min(PIECE_BYTES, total - done);
    const range = `bytes=${done}-${done + length - 1}`;
    const response = await ask(url, { headers: { ...headers, range } });
    const bytes = response.status === 206 ? new Uint8Array(await response.arrayBuffer()) : undefined;
    if (bytes?.length !== length) {
      const found = `status ${response.status}${bytes ? ` and ${bytes.length} bytes` : ""}`;
      throw new AppError("upstream", `${url}: ${range}: expected status 206 and ${length} bytes, got ${found}`);
    }
    write(handle, bytes, done);
    done += length;
  }
  onProgress({ done: total, total });
}

function write(handle: AccessHandle, bytes: Uint8Array, at: number): void {
  try {
    if (handle.write(bytes, { at }) === bytes.length) return;
  } catch (error) {
    throw new AppError("storage", `this page's storage: ${messageOf(error)}`, { cause: error });
  }
  throw new AppError("too_large", "this page's storage is full: remove a stored model");
}

function ask(url: string, init: RequestInit): Promise<Response> {
  return fetch(url, init).catch((error: unknown) => {
    throw new AppError("upstream", `${url}: ${messageOf(error)}`, { cause: error });
  });
}
