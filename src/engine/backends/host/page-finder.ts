/**
 * Has the system enter pages of mapped files into this process's table: a first pass would have it do so page by page,
 * which takes a third as long as the pass itself. Linux only; elsewhere nothing is done.
 */
import { dlopen, ptr, type Pointer } from "bun:ffi";

/** A part of a file in memory. */
export interface MappedRange {
  readonly address: number;
  readonly byteLength: number;
}

interface PageFinder {
  add(range: MappedRange): void;
  /** Enters some pages; false: there are no more, or they are on a disk, from where whoever reads ahead brings them. */
  step(): boolean;
}

const PAGE_BYTES = 4096;
/** As much as the largest page has. Meanwhile nobody can map anything: that is a quarter of a millisecond at most. */
const STEP_BYTES = 2 ** 21;
const MADV_POPULATE_READ = 22;

export function makePageFinder(): PageFinder {
  const libc = openLibc();
  const first = new Uint8Array(1);
  let ranges: MappedRange[] = [];
  let at = 0; // an address in the first of them
  return {
    add({ address, byteLength }) {
      const start = Math.floor(address / PAGE_BYTES) * PAGE_BYTES;
      if (libc) ranges.push({ address: start, byteLength: byteLength + address - start });
    },
    step() {
      const range = ranges[0];
      if (!range || !libc) return false;
      at = Math.max(at, range.address);
      const end = range.address + range.byteLength;
      const next = Math.min(end, Math.floor(at / STEP_BYTES + 1) * STEP_BYTES);
      const place = at as Pointer; // of a range that was mapped; if it is no more, the system refuses both calls
      const isThere = libc.symbols.mincore(place, PAGE_BYTES, ptr(first)) === 0 && (first[0]! & 1) === 1;
      if (!isThere || libc.symbols.madvise(place, next - at, MADV_POPULATE_READ) !== 0) ranges = [];
      else if (next < end) at = next;
      else [ranges, at] = [ranges.slice(1), 0];
      return ranges.length > 0;
    },
  };
}

function openLibc() {
  if (process.platform !== "linux") return undefined;
  for (const name of ["libc.so.6", `libc.musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`]) {
    try {
      return dlopen(name, {
        madvise: { args: ["ptr", "usize", "i32"], returns: "i32" },
        mincore: { args: ["ptr", "usize", "ptr"], returns: "i32" },
      });
    } catch {
      // Not this libc; try the next.
    }
  }
  return undefined;
}
