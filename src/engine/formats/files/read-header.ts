/**
 * Reads model headers without mapping the model or blocking the process: a server must survive the truncation of a
 * file, and a vocabulary of 260,000 words must not stall it. Bytes come in pieces, and other work runs between them.
 * The parser is `parse.ts`; `read.ts` opens models for their weights.
 */
import { open, stat, type FileHandle } from "node:fs/promises";
import { setImmediate } from "node:timers/promises";
import { makeCursor, moveWindow } from "../gguf/cursor.ts";
import type { ModelHeader } from "../gguf/gguf.ts";
import { endedEarly, notRegular, openError, reading } from "../../../base/system.ts";
import { headerSteps, MAX_HEADER_BYTES, type ArrayItemsMax, type Header } from "../gguf/parse.ts";
import { joinTensors, missingPart, shardPaths } from "../gguf/shards.ts";

/** Parsing this many bytes of strings takes about 2 ms. */
const PIECE_BYTES = 256 * 2 ** 10;

interface HeaderOptions {
  /** Longer arrays are skipped, and are empty in the metadata. Absent: all are kept. */
  readonly arrayItemsMax?: ArrayItemsMax;
}

/**
 * Reads the header of a model, and of all parts if it is split, by its first part. Throws as `openGguf` does, and
 * `bad_file` if a file shrinks meanwhile.
 */
export async function readHeader(path: string, options: HeaderOptions = {}): Promise<ModelHeader> {
  const first = await readPart(path, { ...options, shard: 0 });
  const { version, metadata } = first.header;
  const parts = [first];
  const paths = shardPaths(path, metadata);
  for (const [shard, part] of paths.entries()) {
    if (shard > 0) parts.push(await readLaterPart(part, { shard, count: paths.length }));
  }
  const headers = parts.map(({ header }) => header);
  const fileBytes = parts.reduce((sum, part) => sum + part.fileBytes, 0);
  return { path, version, metadata, tensors: joinTensors(paths, headers), fileBytes };
}

interface Part {
  readonly header: Header;
  readonly fileBytes: number;
}

/** Reads only tensors and their index in the split, for later parts. */
async function readLaterPart(path: string, { shard, count }: { shard: number; count: number }): Promise<Part> {
  try {
    return await readPart(path, { shard, arrayItemsMax: 0 });
  } catch (error) {
    throw missingPart(error, { path, shard, count });
  }
}

/** The header of one file, which may be a part of a split model. Throws as `readHeader`. */
export async function readPart(path: string, options: HeaderOptions & { shard: number }): Promise<Part> {
  const file = await openFile(path);
  try {
    const fileBytes = (await file.stat()).size;
    const end = Math.min(fileBytes, MAX_HEADER_BYTES);
    const cursor = makeCursor(new Uint8Array(0), path, end);
    const steps = headerSteps(cursor, { ...options, fileBytes });
    const piece = new Uint8Array(PIECE_BYTES); // reused: the parser keeps copies
    for (;;) {
      const step = steps.next();
      if (step.done) return { header: step.value, fileBytes };
      const length = Math.min(Math.max(step.value, PIECE_BYTES), end - cursor.at);
      const bytes = length > PIECE_BYTES ? new Uint8Array(length) : piece.subarray(0, length);
      await fill(file, bytes, { path, offset: cursor.at });
      await setImmediate(); // reads from the page cache finish at once, without a turn for timers or sockets
      moveWindow(cursor, bytes);
    }
  } finally {
    await file.close();
  }
}

async function openFile(path: string): Promise<FileHandle> {
  try {
    // Checked before opening, because opening a pipe would wait for its writer.
    if (!(await stat(path)).isFile()) throw notRegular(path);
    return await open(path, "r");
  } catch (error) {
    throw openError(path, error);
  }
}

/** Reads at `offset` until `bytes` is full. */
async function fill(file: FileHandle, bytes: Uint8Array, { path, offset }: { path: string; offset: number }) {
  for (let done = 0; done < bytes.length;) {
    const { bytesRead } = await reading(path, file.read(bytes, done, bytes.length - done, offset + done));
    if (bytesRead === 0) throw endedEarly(path);
    done += bytesRead;
  }
}
