/**
 * Gives back the memory of mapped files that only loading touched: the GGUF, and in a cache entry the weights as they were
 * before packing. Pages that are needed after all come back from the page cache. Linux only: elsewhere the system takes
 * them when it is short of memory.
 */
import { dlopen, FFIType, ptr } from "bun:ffi";
import { readFileSync } from "node:fs";

const MADV_DONTNEED = 4; // bits/mman-linux.h: drops the pages; an unwritten file mapping reads them again
const PAGE_BYTES = 65_536; // the largest page size of any Linux we run on: ranges are rounded inwards to it

/** Drops the resident pages below a view on a mapped file that nobody writes to. */
export function dropPages(mapped: Uint8Array): void {
  if (process.platform !== "linux" || mapped.length < 2 * PAGE_BYTES) return;
  const address = ptr(mapped);
  const start = Math.ceil(address / PAGE_BYTES) * PAGE_BYTES;
  const end = Math.floor((address + mapped.length) / PAGE_BYTES) * PAGE_BYTES;
  madvise()(start, end - start);
}

/** Drops the resident pages of all mappings of a file that were not written to. */
export function dropMappedPages(path: string): void {
  if (process.platform !== "linux") return;
  const advise = madvise();
  for (const mapping of readFileSync("/proc/self/smaps", "utf8").split(/\n(?=[0-9a-f]+-[0-9a-f]+ )/)) {
    const range = /^([0-9a-f]+)-([0-9a-f]+) /.exec(mapping);
    if (!range || !mapping.slice(0, mapping.indexOf("\n")).endsWith(path)) continue;
    if (!/^Anonymous:\s+0 kB$/m.test(mapping)) continue; // written to: its pages exist nowhere else
    const start = parseInt(range[1]!, 16);
    advise(start, parseInt(range[2]!, 16) - start);
  }
}

function madvise(): (start: number, byteLength: number) => void {
  const { symbols } = dlopen("libc.so.6", {
    madvise: { args: [FFIType.u64, FFIType.u64, FFIType.i32], returns: FFIType.i32 },
  });
  return (start, byteLength) => void symbols.madvise(BigInt(start), BigInt(byteLength), MADV_DONTNEED);
}
