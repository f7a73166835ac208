/**
 * A blob in download: `sha256-<hex>-partial`, with a small JSON file per part, `…-partial-<n>`, that records the part's
 * progress. Both survive the process. The layout is that of other servers, whose downloads can be resumed here. The
 * state files are untrusted: if they are inconsistent, the download starts over.
 */
import { mkdir, open, readdir, readFile, stat, type FileHandle } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { assert } from "../../base/index.ts";
import { blobPath, type Blob } from "../store/blobs.ts";
import { putInPlace, removeFile, storageError, writeBytes, writeDurably } from "../../base/system.ts";

const PARTS_MAX = 1024;
const STATE_BYTES_MAX = 1024; // four numbers
const CHECKPOINT_MS = 3000; // work that a kill may lose; each checkpoint waits for the disk

export interface Part {
  readonly index: number;
  /** Offset of its first byte in the blob. */
  readonly offset: number;
  readonly size: number;
  /** Bytes from its start that were received. */
  completed: number;
}

/** The opener closes it by `install`, `discard` or disposal; disposal keeps the state for a later download. */
export class PartFile {
  readonly #path: string;
  readonly #file: FileHandle;
  #parts: Part[];
  /** The saved `completed` of each part. */
  readonly #saved = new Map<number, number>();
  /** Resolves with the last write: two concurrent writes to a file would wait for each other at full load. */
  #writing: Promise<void> = Promise.resolve();
  #checkpoint: Promise<void> | undefined;
  #checkpointAt = Date.now();
  /** The first failure of the disk: the system reports each only once, perhaps to a checkpoint. */
  #diskError: { readonly cause: unknown } | undefined;
  #isOpen = true;

  private constructor(path: string, file: FileHandle, parts: Part[]) {
    this.#path = path;
    this.#file = file;
    this.#parts = parts;
  }

  /** Resumes an earlier download if its state is consistent. Throws `storage`. */
  static async open(root: string, { digest, size }: Blob, partBytes: number): Promise<PartFile> {
    const path = `${blobPath(root, digest)}-partial`;
    const found = await readParts(path, size);
    if (!found) await removeStates(path);
    try {
      await mkdir(dirname(path), { recursive: true });
      const file = await open(path, found ? "r+" : "w+");
      return new PartFile(path, file, found ?? planParts(size, partBytes));
    } catch (error) {
      throw storageError(error, dirname(path));
    }
  }

  get path(): string {
    return this.#path;
  }

  get fd(): number {
    return this.#file.fd;
  }

  get parts(): readonly Part[] {
    return this.#parts;
  }

  /** Bytes received. */
  get completed(): number {
    return this.#parts.reduce((sum, part) => sum + part.completed, 0);
  }

  /** Bytes from the start of the blob without a gap. */
  get prefix(): number {
    let length = 0;
    for (const { size, completed } of this.#parts) {
      length += completed;
      if (completed < size) break;
    }
    return length;
  }

  /** Appends to a part. Throws `storage`. */
  async write(part: Part, bytes: Uint8Array): Promise<void> {
    assert(part.completed + bytes.length <= part.size, "more bytes than a part has room for");
    try {
      const written = this.#writing.then(() => writeAll(this.#file, bytes, part.offset + part.completed));
      this.#writing = written.catch(() => {});
      await written;
    } catch (error) {
      throw storageError(error, dirname(this.#path));
    }
    part.completed += bytes.length;
    if (Date.now() - this.#checkpointAt < CHECKPOINT_MS) return;
    this.#checkpoint ??= this.#save().catch(() => {}); // retried at the next checkpoint
  }

  /** Waits until the disk has all bytes; else `install` waits for it. Throws `storage`. */
  async flush(): Promise<void> {
    await this.#checkpoint;
    try {
      await this.#sync();
    } catch (error) {
      throw storageError(error, dirname(this.#path));
    }
  }

  async #sync(): Promise<void> {
    try {
      await this.#file.datasync();
    } catch (cause) {
      this.#diskError ??= { cause };
    }
    if (this.#diskError) throw this.#diskError.cause;
  }

  /** Merges all parts into one, keeping only the gapless start: the rest then comes in one response. */
  async merge(): Promise<Part> {
    const size = this.#parts.reduce((sum, part) => sum + part.size, 0);
    const part: Part = { index: 0, offset: 0, size, completed: this.prefix };
    await this.#checkpoint;
    this.#parts = [part];
    this.#saved.clear();
    await removeStates(this.#path);
    return part;
  }

  /** Gives the complete, verified blob its name. Throws `storage`. */
  async install(target: string): Promise<void> {
    await this.#close();
    try {
      await putInPlace({ from: this.#path, to: target });
    } catch (error) {
      throw storageError(error, dirname(target));
    }
    await removeStates(this.#path);
  }

  /** Deletes everything. */
  async discard(): Promise<void> {
    await this.#close();
    await removeStates(this.#path);
    await removeFile(this.#path);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isOpen) return;
    if (this.completed === 0) return this.discard();
    await this.#checkpoint;
    await this.#save().catch(() => {}); // the disk may be full: then the older state remains
    await this.#close();
  }

  async #close(): Promise<void> {
    await this.#checkpoint;
    this.#isOpen = false;
    await this.#file.close();
  }

  /** Writes content first, then the state. */
  async #save(): Promise<void> {
    const changed = this.#parts
      .filter(({ index, completed }) => completed > 0 && this.#saved.get(index) !== completed)
      .map((part) => ({ ...part }));
    try {
      await this.#sync();
      // all parts get their state files together, because a set with gaps would be inconsistent
      const fresh = this.#saved.size === 0 ? this.#parts.filter(({ completed }) => completed === 0) : [];
      for (const { index, offset, size, completed } of [...fresh, ...changed]) {
        const state = JSON.stringify({ N: index, Offset: offset, Size: size, Completed: completed });
        await writeDurably(`${this.#path}-${index}`, (temporary) =>
          writeBytes(temporary, new TextEncoder().encode(state)),
        );
        this.#saved.set(index, completed);
      }
    } finally {
      this.#checkpointAt = Date.now();
      this.#checkpoint = undefined;
    }
  }
}

/** In order and without gaps; an empty blob has no parts. @param partBytes minimum size of a part */
function planParts(size: number, partBytes: number): Part[] {
  const bytes = Math.max(partBytes, Math.ceil(size / PARTS_MAX));
  return Array.from({ length: Math.ceil(size / bytes) }, (_, index) => ({
    index,
    offset: index * bytes,
    size: Math.min(bytes, size - index * bytes),
    completed: 0,
  }));
}

/** The state of an earlier download; undefined if missing or inconsistent. */
async function readParts(path: string, size: number): Promise<Part[] | undefined> {
  const parts: Part[] = [];
  const length = await stat(path).then(
    (found) => found.size,
    () => -1,
  );
  const states = await stateFiles(path);
  if (length < 0 || states.length === 0 || states.length > PARTS_MAX) return undefined;
  for (const state of states) {
    const part = await readPart(state);
    if (part) parts.push(part);
  }
  parts.sort((a, b) => a.offset - b.offset);
  let end = 0;
  for (const [i, part] of parts.entries()) {
    const isWritten = part.completed === 0 || part.offset + part.completed <= length;
    if (part.index !== i || part.offset !== end || !isWritten) return undefined;
    end += part.size;
  }
  return parts.length === states.length && end === size ? parts : undefined;
}

async function readPart(path: string): Promise<Part | undefined> {
  try {
    if ((await stat(path)).size > STATE_BYTES_MAX) return undefined;
    const { N, Offset, Size, Completed } = JSON.parse(await readFile(path, "utf8")) as Record<string, unknown>;
    const [index, offset, size, completed] = [N, Offset, Size, Completed].map((value) =>
      Number.isSafeInteger(value) ? Number(value) : -1,
    );
    if (index === undefined || offset === undefined || size === undefined || completed === undefined) return undefined;
    if (index < 0 || offset < 0 || size < 1 || completed < 0 || completed > size) return undefined;
    return { index, offset, size, completed };
  } catch {
    return undefined; // not a usable state
  }
}

/** Paths of the state files beside a part file. */
async function stateFiles(path: string): Promise<string[]> {
  const folder = dirname(path);
  const prefix = `${basename(path)}-`;
  const names = await readdir(folder).catch(() => []);
  return names
    .filter((name) => name.startsWith(prefix) && /^\d{1,6}$/.test(name.slice(prefix.length)))
    .map((name) => join(folder, name));
}

async function removeStates(path: string): Promise<void> {
  for (const state of await stateFiles(path)) await removeFile(state);
}

async function writeAll(file: FileHandle, bytes: Uint8Array, offset: number): Promise<void> {
  for (let at = 0; at < bytes.length;) {
    at += (await file.write(bytes, at, bytes.length - at, offset + at)).bytesWritten;
  }
}
