/**
 * Moves a mapped file into pages of 2 MB while its model runs. Kernels read weights at the speed of memory, and with
 * pages of 4 KB looking up their addresses takes up to a sixth of that time. Each piece is read into anonymous memory,
 * which then takes the place of its part of the mapping in one call: readers see the same bytes at the same address
 * at all times. Linux only: other systems give pages of this size only to processes with special rights.
 */
import { readFileSync } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { toArrayBuffer, type Pointer } from "bun:ffi";
import { availableMemory, openLibc } from "../../../base/system.ts";
import { reservePages } from "./reserve.ts";

/** The mapping and its file. */
interface Mapped {
  readonly path: string;
  /** Inode of the file: by now its path may lead to another file. */
  readonly ino: number;
  readonly address: number;
  readonly byteLength: number;
  readonly isOpen: () => boolean;
}

const PAGE_BYTES = 2 ** 21;
/** Bytes per read: a thread of the system reads them, and 16 pages cost two calls of this thread. */
const PIECE_BYTES = 16 * PAGE_BYTES;
/** A smaller file is in the processor's caches, or gains nothing noticeable. */
const LEAST_BYTES = 32 * PAGE_BYTES;
/**
 * The moved bytes may take this share of the available memory: unlike mapped pages, they cannot be dropped. Half of the
 * memory is for keys and values.
 */
const MEMORY_SHARE = 0.45;
const SETTINGS = "/sys/kernel/mm/transparent_hugepage";

const PROT_READ = 1;
const MREMAP_MAYMOVE_FIXED = 3;

/**
 * Resolves when all bytes are moved, or as soon as that is impossible: memory is short, the file was replaced or
 * truncated, or the system refuses. The remaining bytes stay mapped. Never throws.
 * @returns the number of bytes moved
 */
export async function moveToHugePages(mapped: Mapped, available: () => number = availableMemory): Promise<number> {
  const { path, ino, byteLength, isOpen } = mapped;
  if (byteLength < LEAST_BYTES || !offersPages()) return 0;
  const mover = makeMover(mapped);
  const file = mover && (await open(path).catch(() => undefined));
  let moved = 0;
  try {
    if (!file || (await file.stat()).ino !== ino) return 0;
    for (const { at, bytes } of piecesOf(mapped)) {
      const left = byteLength - moved;
      if (!isOpen() || left > MEMORY_SHARE * available()) break;
      const isRead = await readWhole(file, mover.buffer(at, bytes), at);
      if (!isRead || !isOpen() || !mover.move(at, bytes)) break;
      moved += bytes;
    }
    return moved;
  } catch {
    return moved; // the disk failed: these bytes stay mapped
  } finally {
    await file?.close().catch(() => {});
    mover?.end();
  }
}

/** Parts of the mapping in whole pages of 2 MB, by their offset in the file. */
function* piecesOf({ address, byteLength }: Mapped): Generator<{ at: number; bytes: number }> {
  const end = Math.floor((address + byteLength) / PAGE_BYTES) * PAGE_BYTES - address;
  for (let at = -address & (PAGE_BYTES - 1); at < end; at += PIECE_BYTES) {
    yield { at, bytes: Math.min(PIECE_BYTES, end - at) };
  }
}

/** Returns whether the system has pages of this size, and gives them to a process on request. */
function offersPages(): boolean {
  if (process.platform !== "linux") return false;
  try {
    const size = Number(readFileSync(`${SETTINGS}/hpage_pmd_size`, "utf8"));
    return size === PAGE_BYTES && !readFileSync(`${SETTINGS}/enabled`, "utf8").includes("[never]");
  } catch {
    return false;
  }
}

/** Undefined if this system lacks a function or address space. */
function makeMover({ address, byteLength }: Mapped) {
  const libc = openLibc({
    mprotect: { args: ["ptr", "usize", "i32"], returns: "i32" },
    mremap: { args: ["ptr", "usize", "usize", "i32", "ptr"], returns: "ptr" },
  });
  // As large as the file. Each piece is read to the same offset within a page, and then moved out.
  const reserved = libc && reservePages(byteLength + PAGE_BYTES);
  if (!reserved) {
    libc?.close();
    return undefined;
  }
  const { mprotect, mremap } = libc.symbols;
  const base = reserved.address + ((address - reserved.address) & (PAGE_BYTES - 1));
  let moved: { readonly from: number; readonly to: number } | undefined; // one part: pieces are moved in order
  return {
    end(): void {
      reserved.release(moved);
      libc.close();
    },
    buffer: (at: number, bytes: number) => new Uint8Array(toArrayBuffer((base + at) as Pointer, 0, bytes)),
    move(at: number, bytes: number): boolean {
      const [from, to] = [(base + at) as Pointer, (address + at) as Pointer];
      const isMoved =
        mprotect(from, bytes, PROT_READ) === 0 &&
        Number(mremap(from, bytes, bytes, MREMAP_MAYMOVE_FIXED, to)) === address + at;
      if (isMoved) moved = { from: moved?.from ?? base + at, to: base + at + bytes };
      return isMoved;
    },
  };
}

/** False if the file ends within the range. Detaches the buffer, whose memory moves elsewhere. */
async function readWhole(file: FileHandle, { buffer, byteLength }: Uint8Array<ArrayBuffer>, at: number) {
  let done = 0;
  while (done < byteLength) {
    const { bytesRead } = await file.read(new Uint8Array(buffer, done), 0, byteLength - done, at + done);
    if (bytesRead === 0) break;
    done += bytesRead;
  }
  buffer.transfer(0);
  return done === byteLength;
}
