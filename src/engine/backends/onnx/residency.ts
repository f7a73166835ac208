/**
 * Frees the memory of mapped files that only loading touched: the GGUF, and in a cache entry the weights before
 * packing. Pages that are needed later come back from the page cache. Linux only: other systems reclaim them when
 * memory is short.
 */
import { FFIType, ptr } from "bun:ffi";
import { readFileSync } from "node:fs";
import { openLibc } from "../../../base/system.ts";

const MADV_DONTNEED = 4; // bits/mman-linux.h: drops the pages; an unmodified file mapping reads them again

/** A mapping of this process, as /proc/self/smaps lists it. */
interface Mapping {
  readonly start: number;
  readonly end: number;
  readonly path: string;
}

/** Drops the resident pages of all mappings of a file. */
export function dropFilePages(path: string): void {
  for (const mapping of fileMappings()) if (mapping.path === path) dropRange(mapping.start, mapping.end);
}

/** Makes a function that drops the resident pages below views; skips views outside file mappings. */
export function makePageDropper(views: readonly Uint8Array[]): () => void {
  const mappings = fileMappings();
  const page = 65_536; // the largest page size of supported Linux systems; ranges are rounded inwards
  const ranges = views.flatMap((view) => {
    const start = view.length > 0 ? ptr(view) : 0;
    const end = start + view.length;
    if (!mappings.some((each) => each.start <= start && end <= each.end)) return [];
    return [{ start: Math.ceil(start / page) * page, end: Math.floor(end / page) * page }];
  });
  return () => {
    for (const { start, end } of ranges) dropRange(start, end);
  };
}

/** Mappings that equal their file's content: modified pages of a private mapping exist nowhere else. */
function fileMappings(): readonly Mapping[] {
  if (process.platform !== "linux") return [];
  return readFileSync("/proc/self/smaps", "utf8")
    .split(/\n(?=[0-9a-f]+-[0-9a-f]+ )/)
    .flatMap((text) => {
      const head = /^([0-9a-f]+)-([0-9a-f]+) \S+ \S+ \S+ \d+\s+(\/.*)$/m.exec(text);
      if (!head || !/^Anonymous:\s+0 kB$/m.test(text)) return [];
      const [, start, end, path] = head;
      return [{ start: parseInt(start!, 16), end: parseInt(end!, 16), path: path! }]; // three groups, all matched
    });
}

function dropRange(start: number, end: number): void {
  if (end <= start) return;
  const libc = openLibc({ madvise: { args: [FFIType.u64, FFIType.u64, FFIType.i32], returns: FFIType.i32 } });
  libc?.symbols.madvise(BigInt(start), BigInt(end - start), MADV_DONTNEED);
}
