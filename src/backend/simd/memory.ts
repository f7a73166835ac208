/** Memory that kernels see by address. Another implementation may keep it elsewhere than in this process's own. */
import { ptr } from "bun:ffi";
import { AppError } from "../../base/errors.ts";

/** What a lowering needs to know of memory. */
export interface Memory {
  /** Zeros, aligned to 64 bytes; `what` names them where there is no room. */
  allocate(bytes: number, what: string): Block;
  /** Where a view lies: as it is, not a copy. It must not go away as long as the memory is used. */
  place(view: Placed): number;
  /** Says that placed views may have new contents; left out where they are seen as they are. */
  refresh?(views: readonly Placed[]): void;
  /** Bytes allocated so far. */
  readonly bytes: number;
  /** Lets go of all of it. */
  release(): void;
}

export type Placed = Uint8Array | Int8Array | Float32Array;

export interface Block {
  readonly address: number;
  readonly view: Uint8Array;
}

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
