/** Memory of Linux without a file, in pages of 2 MB if the system has them. */
import type { Pointer } from "bun:ffi";
import { openLibc } from "../../../base/system.ts";

const PROT_READ = 1;
const PROT_WRITE = 2;
const MAP_PRIVATE_ANONYMOUS_NORESERVE = 0x4022;
const MADV_DONTNEED = 4;
const MADV_HUGEPAGE = 14;

export interface Reserved {
  readonly address: number;
  /** Frees the pages of a part, which then reads as zeros. */
  discard(address: number, bytes: number): void;
  /**
   * Frees the memory. @param moved a part that was moved elsewhere, from and to addresses in pages: others may use its
   * addresses by now, such as the stack of a new thread
   */
  release(moved?: { readonly from: number; readonly to: number }): void;
}

/** Reserves addresses: pages are provided when they are first written. Undefined: the system refuses. */
export function reservePages(bytes: number): Reserved | undefined {
  const libc = openLibc({
    mmap: { args: ["ptr", "usize", "i32", "i32", "i32", "i64"], returns: "ptr" },
    munmap: { args: ["ptr", "usize"], returns: "i32" },
    madvise: { args: ["ptr", "usize", "i32"], returns: "i32" },
  });
  if (!libc) return undefined;
  const { mmap, munmap, madvise } = libc.symbols;
  const begin = mmap(null, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE_ANONYMOUS_NORESERVE, -1, 0);
  const address = Number(begin);
  if (!begin || !Number.isSafeInteger(address)) {
    libc.close(); // MAP_FAILED is the address 2^64 − 1
    return undefined;
  }
  madvise(begin, bytes, MADV_HUGEPAGE); // otherwise pages are small
  return {
    address,
    discard: (at, length) => void madvise(at as Pointer, length, MADV_DONTNEED),
    release({ from, to } = { from: address, to: address }) {
      const end = address + bytes;
      if (from > address) munmap(begin, from - address);
      if (to < end) munmap(to as Pointer, end - to);
      libc.close();
    },
  };
}
