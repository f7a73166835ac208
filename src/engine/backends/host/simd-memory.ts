/** This process's memory for the kernels: addresses are the process's own. */
import { ptr, type Pointer } from "bun:ffi";
import { AppError } from "../../../base/index.ts";
import { openLibc } from "../../../base/system.ts";
import type { Memory, Placed } from "../simd/memory.ts";

const ALIGNMENT = 64;
/** A multiple of the page size of every system. */
const PAGE_BYTES = 64 * 1024;
const MADV_DONTNEED = 4;

/** Memory of this process. The system provides pages when they are first written. */
export function makeNativeMemory(): Memory {
  const discard = makeDiscard();
  const kept = new Set<Placed>();
  let total = 0;
  return {
    get bytes() {
      return total;
    },
    allocate(bytes, what) {
      let buffer: ArrayBuffer;
      try {
        buffer = new ArrayBuffer(bytes + ALIGNMENT);
      } catch (error) {
        const message = `${what}: expected what this machine can allocate, got ${bytes} bytes`;
        throw new AppError("too_large", message, { cause: error });
      }
      const whole = new Uint8Array(buffer);
      const offset = (ALIGNMENT - (ptr(whole) % ALIGNMENT)) % ALIGNMENT;
      const view = whole.subarray(offset, offset + bytes);
      kept.add(view);
      total += bytes;
      return { address: Number(ptr(whole)) + offset, view };
    },
    place(view) {
      if (view.buffer.byteLength === 0) return 0; // moves a small array out of the collector's heap
      kept.add(view);
      return ptr(view);
    },
    ...(discard && { discard }),
    release: () => kept.clear(),
  };
}

/** Undefined on systems where a discarded page may keep its content. */
function makeDiscard(): Memory["discard"] {
  if (process.platform !== "linux") return undefined;
  const libc = openLibc({ madvise: { args: ["ptr", "usize", "i32"], returns: "i32" } });
  if (!libc) return undefined;
  return ({ address }, offset, bytes) => {
    const first = Math.ceil((address + offset) / PAGE_BYTES) * PAGE_BYTES;
    const end = Math.floor((address + offset + bytes) / PAGE_BYTES) * PAGE_BYTES;
    if (end > first) libc.symbols.madvise(first as Pointer, end - first, MADV_DONTNEED); // in range of the block
  };
}
