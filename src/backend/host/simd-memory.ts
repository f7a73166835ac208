/** Memory of this process as the kernels' memory: addresses are its own. */
import { ptr } from "bun:ffi";
import { AppError } from "../../base/errors.ts";
import type { Memory, Placed } from "../simd/memory.ts";

const ALIGNMENT = 64;

/** Memory of this process. The system gives its pages when they are first written. */
export function makeNativeMemory(): Memory {
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
      if (view.buffer.byteLength === 0) return 0; // which takes a small array out of the collector's heap
      kept.add(view);
      return ptr(view);
    },
    release: () => kept.clear(),
  };
}
