/** A WebAssembly memory as the kernels' memory: what they see lies in it, so weights are copied there. */
import { AppError } from "../../../base/index.ts";
import type { Block, Memory, Placed } from "../simd/memory.ts";

const PAGE_BYTES = 65_536;
const PAGES_MAX = 65_536; // 4 GiB, what 32 bits address
const ALIGNMENT = 64;
/** What the linker puts at the beginning: constants, and the stack of the first thread. */
const RESERVED_BYTES = 2 ** 20;
/** Memory grows by at least this much: each time costs a call into the system. */
const GROWTH_PAGES = 256;

export interface WasmMemory extends Memory {
  /** Shared, so that threads can have it. */
  readonly linear: WebAssembly.Memory;
}

/** Throws `too_large`, now or when it grows, where there is no room. */
export function makeWasmMemory(): WasmMemory {
  const linear = makeLinear();
  const placed = new WeakMap<Placed, Block>();
  let next = RESERVED_BYTES;
  const allocate = (size: number, what: string): Block => {
    const address = Math.ceil(next / ALIGNMENT) * ALIGNMENT;
    reach(linear, address + size, what);
    next = address + size;
    const view = new Uint8Array(linear.buffer, address, size); // zeros: none was given back before
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
    release() {}, // the collector's
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
