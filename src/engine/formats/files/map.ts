/**
 * A file mapped read-only into memory. Not `Bun.mmap`: that asks for write permission, which a shared model store
 * rarely gives, and stops at the 4 GiB of one ArrayBuffer. Here the system's own functions map the whole file
 * and each view is an ArrayBuffer of its own. If they cannot be called, a view is a copy of its range.
 *
 * A file that someone truncates while it is mapped ends the process (SIGBUS), as in every program that maps files.
 * Blobs are never truncated in place, and runners are separate processes.
 */
import { closeSync, constants, fstatSync, openSync, readSync, statSync, type Stats } from "node:fs";
import { resolve, toNamespacedPath } from "node:path";
import { ptr, toArrayBuffer, type Pointer } from "bun:ffi";
import { AppError, assert } from "../../../base/index.ts";
import type { ByteSource, OpenSource } from "../gguf/source.ts";
import { fitsInMemory } from "./fits-in-memory.ts";
import { moveToHugePages } from "./huge-pages.ts";
import { mapByKernel } from "./map-windows.ts";
import { readAhead } from "./read-ahead.ts";
import { endedEarly, notRegular, openError, openLibc } from "../../../base/system.ts";

/** JavaScriptCore's largest ArrayBuffer. */
const MAX_VIEW_BYTES = 2 ** 32;

const PROT_READ = 1;
const MAP_SHARED = 1; // this value and the next are the same on Linux and macOS
const MADV_WILLNEED = 3;
/** For one advice, Linux reads no more than one request of the disk, which may be little larger than this. */
const ADVICE_BYTES = 512 * 2 ** 10;
const MADV_DONTNEED = 4; // unmaps the pages, which stay in the file cache
const MADV_HUGEPAGE = 14; // these three are Linux's
const MADV_COLD = 20;
const MADV_POPULATE_READ = 22;

/**
 * Opens a file. Throws `not_found`, or `bad_file` if it is not a regular file or cannot be read. `close` unmaps it and
 * detaches every view, so that late JavaScript readers see an empty view instead of freed memory.
 */
export const mapFile: OpenSource = (path) => mapFileBy(path, mapWhole);

/** As `mapFile`. @param mapper maps an open file, or returns undefined if that is impossible */
export function mapFileBy(path: string, mapper: Mapper): ByteSource {
  const fd = openFile(path);
  const opened = fstatSync(fd);
  const { size: byteLength } = opened;
  const map = byteLength > 0 ? mapper({ fd, path, byteLength }) : undefined;
  const buffers: ArrayBuffer[] = [];
  let open = true;
  let fits: boolean | undefined;
  if (map) closeSync(fd); // the mapping holds the file
  return {
    byteLength,
    copies: map === undefined,
    view(offset, length) {
      assert(open, `${path}: read after close`);
      assert(offset >= 0 && length >= 0 && offset + length <= byteLength, `${path}: range outside the file`);
      if (length > MAX_VIEW_BYTES) {
        const range = `bytes ${offset} to ${offset + length}`;
        throw new AppError("unsupported", `${path}: ${range}: expected at most ${MAX_VIEW_BYTES} bytes, got ${length}`);
      }
      if (length === 0) return new Uint8Array(0);
      if (!map) return readRange(fd, { path, offset, length });
      // The cast is safe: an address inside the mapping is a pointer.
      const buffer = toArrayBuffer((map.address + offset) as Pointer, 0, length);
      buffers.push(buffer);
      return new Uint8Array(buffer);
    },
    changed() {
      const now = statSync(path, { throwIfNoEntry: false });
      if (!now || now.ino !== opened.ino || now.dev !== opened.dev) return undefined; // the open file is unchanged
      if (now.size === byteLength && now.mtimeMs === opened.mtimeMs) return undefined;
      const [was, is] = [opened, now].map(({ size, mtime }) => `${size} bytes of ${mtime.toISOString()}`);
      return `${path}: changed while the model was loaded: expected ${was}, got ${is}`;
    },
    openDirect: () => openAgain(path, opened),
    ...(map?.resident && {
      readAhead: (options) => readAhead({ byteLength, ...map, ...options, isOpen: () => open }),
    }),
    ...(map?.prefetch && {
      prefetch: (offset, length) => open && map.prefetch?.(offset, length),
      release: (offset, length) => open && !(fits ??= fitsInMemory(byteLength)) && map.release?.(offset, length),
    }),
    ...(map && {
      moveToHugePages: () =>
        moveToHugePages({ path, ino: opened.ino, address: map.address, byteLength, isOpen: () => open }),
    }),
    close() {
      if (!open) return;
      open = false;
      for (const buffer of buffers) buffer.transfer(0);
      if (map) map.unmap();
      else closeSync(fd);
    },
  };
}

function openFile(path: string): number {
  try {
    // Checked before opening, because opening a pipe would wait for its writer.
    if (!statSync(path).isFile()) throw notRegular(path);
    return openSync(path, "r");
  } catch (error) {
    throw openError(path, error);
  }
}

/** Undefined if the path leads to another file or to none, or if the file system only reads through the file cache. */
function openAgain(path: string, opened: Stats): number | undefined {
  for (const flags of [constants.O_RDONLY | (constants.O_DIRECT ?? 0), constants.O_RDONLY]) {
    let fd: number;
    try {
      fd = openSync(path, flags);
    } catch {
      continue;
    }
    const { ino, dev, size, mtimeMs } = fstatSync(fd);
    if (ino === opened.ino && dev === opened.dev && size === opened.size && mtimeMs === opened.mtimeMs) return fd;
    closeSync(fd);
  }
  return undefined;
}

/** A file in memory. */
interface Mapping {
  readonly address: number;
  /** Number of bytes of the range that are in memory; undefined: this system does not report it. */
  resident?(offset: number, length: number): number;
  /** Reads a range into memory, in pages of 2 MB if the file system has them; older systems only begin to read. */
  advise?(offset: number, length: number): void;
  /** Begins to read a range into memory. */
  prefetch?(offset: number, length: number): void;
  /** Lets the system reclaim the memory of a range first. */
  release?(offset: number, length: number): void;
  unmap(): void;
}

type Mapper = (file: { fd: number; path: string; byteLength: number }) => Mapping | undefined;

/** Undefined if this system has no known libc, or if it refuses. */
function mapWhole({ fd, path, byteLength }: Parameters<Mapper>[0]): Mapping | undefined {
  if (process.platform === "win32") return mapByKernel(toNamespacedPath(resolve(path)), byteLength);
  const libc = openLibc({
    mmap: { args: ["ptr", "usize", "i32", "i32", "i32", "i64"], returns: "ptr" },
    munmap: { args: ["ptr", "usize"], returns: "i32" },
    madvise: { args: ["ptr", "usize", "i32"], returns: "i32" },
    mincore: { args: ["ptr", "usize", "ptr"], returns: "i32" },
    getpagesize: { args: [], returns: "i32" },
  });
  if (!libc) return undefined;
  const result = libc.symbols.mmap(null, byteLength, PROT_READ, MAP_SHARED, fd, 0);
  const address = Number(result);
  if (!result || !Number.isSafeInteger(address)) {
    libc.close(); // MAP_FAILED is the address 2^64 − 1
    return undefined;
  }
  const { madvise, mincore } = libc.symbols;
  const page = libc.symbols.getpagesize(); // 16 KiB on Apple's processors and some boards
  /** The address of the page that holds `offset`: both calls take whole pages. */
  const at = (offset: number): Pointer => (address + Math.floor(offset / page) * page) as Pointer;
  const reach = (offset: number, length: number): number => length + (offset % page);
  return {
    address,
    resident(offset, length) {
      const pages = new Uint8Array(Math.ceil(reach(offset, length) / page));
      if (mincore(at(offset), reach(offset, length), ptr(pages)) !== 0) return length;
      let count = 0;
      for (let i = 0; i < pages.length; i++) count += pages[i]! & 1;
      return Math.min(length, page * count);
    },
    advise(offset, length) {
      const advice = (kind: number): boolean => madvise(at(offset), reach(offset, length), kind) === 0;
      if (process.platform === "linux") advice(MADV_HUGEPAGE);
      if (process.platform !== "linux" || !advice(MADV_POPULATE_READ)) advice(MADV_WILLNEED);
    },
    prefetch(offset, length) {
      for (let from = offset; from < offset + length; from += ADVICE_BYTES) {
        const count = Math.min(ADVICE_BYTES, offset + length - from);
        madvise(at(from), reach(from, count), MADV_WILLNEED);
      }
    },
    release(offset, length) {
      for (const kind of [MADV_COLD, MADV_DONTNEED]) madvise(at(offset), reach(offset, length), kind);
    },
    unmap() {
      libc.symbols.munmap(result, byteLength);
      libc.close();
    },
  };
}

function readRange(fd: number, range: { path: string; offset: number; length: number }): Uint8Array {
  const bytes = new Uint8Array(range.length);
  let done = 0;
  while (done < range.length) {
    const count = readSync(fd, bytes, done, range.length - done, range.offset + done);
    if (count === 0) throw endedEarly(range.path);
    done += count;
  }
  return bytes;
}
