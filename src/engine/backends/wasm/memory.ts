/** A WebAssembly memory for the kernels: weights are copied into it. */
import { AppError } from "../../../base/index.ts";
import type { Block, Memory, Placed } from "../simd/memory.ts";
import { ADDRESSED_BYTES } from "./room.ts";

const PAGE_BYTES = 65_536;
const PAGES_MAX = ADDRESSED_BYTES / PAGE_BYTES;
const ALIGNMENT = 64;
/** The linker's part at the beginning: constants, and the stack of the first thread. */
const RESERVED_BYTES = 2 ** 20;
/** Minimum growth of the memory, because each growth is a system call. */
const GROWTH_PAGES = 256;

export interface WasmMemory extends Memory {
  /** Shared between threads. */
  readonly linear: WebAssembly.Memory;
}

/** Throws `too_large`, now or on growth, if there is not enough memory. */
export function makeWasmMemory(): WasmMemory {
  const linear = makeLinear();
  const placed = new WeakMap<Placed, Block>();
  let next = RESERVED_BYTES;
  const allocate = (size: number, what: string): Block => {
    const address = Math.ceil(next / ALIGNMENT) * ALIGNMENT;
    reach(linear, address + size, what);
    next = address + size;
    const view = new Uint8Array(linear.buffer, address, size); // zeros: memory is never reused
    return { address, view };
  };
  const copy = (from: Placed, { view }: Block): void =>
    view.set(new Uint8Array(from.buffer, from.byteOffset, from.byteLength));
  return {
    linear,
    interleaves: true,
    allocate,
    get bytes() {
      return next - RESERVED_BYTES;
    },
    place(view) {
      const block = placed.get(view) ?? allocate(view.byteLength, "weights");
      copy(view, block);
      placed.set(view, block);
      return block.address;
    },
    refresh(views) {
      for (const view of views) {
        const block = placed.get(view);
        if (block) copy(view, block);
      }
    },
    release() {}, // the collector frees it
  };
}

function makeLinear(): WebAssembly.Memory {
  try {
    return new WebAssembly.Memory({ initial: RESERVED_BYTES / PAGE_BYTES, maximum: PAGES_MAX, shared: true });
  } catch (error) {
    throw new AppError("too_large", "WebAssembly: no room for the addresses of 4 GiB of memory", { cause: error });
  }
}

function reach(linear: WebAssembly.Memory, end: number, what: string): void {
  const pages = linear.buffer.byteLength / PAGE_BYTES;
  const wanted = Math.ceil(end / PAGE_BYTES);
  if (wanted <= pages) return;
  if (wanted > PAGES_MAX) {
    const message = `${what}: expected at most 4 GiB in all, which WebAssembly can address, got ${end} bytes`;
    throw new AppError("too_large", message);
  }
  try {
    linear.grow(Math.min(Math.max(wanted - pages, GROWTH_PAGES), PAGES_MAX - pages));
  } catch (error) {
    throw new AppError("too_large", `${what}: no memory for ${end} bytes in all`, { cause: error });
  }
}
