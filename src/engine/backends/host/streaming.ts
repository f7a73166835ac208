/** Memory and files of this machine for models that do not fit in memory. */
import { closeSync } from "node:fs";
import { toArrayBuffer, type Pointer } from "bun:ffi";
import { AppError } from "../../../base/index.ts";
import { openLibc } from "../../../base/system.ts";
import { roomForWeights } from "../../formats/files/fits-in-memory.ts";
import type { StreamingHost } from "../simd/streaming/streams.ts";
import { openFileReads } from "./file-reads.ts";

const [PROT_READ, PROT_WRITE] = [1, 2];
const [MAP_PRIVATE, MAP_ANONYMOUS, MAP_NORESERVE] = [2, 0x20, 0x4000]; // Linux's
const [MADV_DONTNEED, MADV_HUGEPAGE] = [4, 14];

/**
 * Undefined on other systems than Linux.
 * @param weightBytes memory for weights; default: as much as there is
 */
export function makeStreamingHost(weightBytes?: number): StreamingHost | undefined {
  if (process.platform !== "linux") return undefined;
  const areas: { address: Pointer; bytes: number }[] = [];
  let libc: ReturnType<typeof openMemory>;
  return {
    openReads: openFileReads,
    closeFile: closeSync,
    room: (taken) => weightBytes ?? roomForWeights(taken),
    reserve(bytes) {
      libc ??= openMemory();
      const flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
      const address = Number(libc?.symbols.mmap(null, bytes, PROT_READ | PROT_WRITE, flags, -1, 0) ?? 0) as Pointer;
      if (!libc || !address || !Number.isSafeInteger(address)) {
        throw new AppError("too_large", `weights: expected addresses that the system grants, got ${bytes} bytes`);
      }
      libc.symbols.madvise(address, bytes, MADV_HUGEPAGE);
      areas.push({ address, bytes });
      return {
        address,
        view: (offset, length) => new Uint8Array(toArrayBuffer((address + offset) as Pointer, 0, length)),
      };
    },
    discard(address, bytes) {
      libc?.symbols.madvise(address as Pointer, bytes, MADV_DONTNEED); // in a range that was reserved
    },
    release() {
      for (const { address, bytes } of areas.splice(0)) libc?.symbols.munmap(address, bytes);
      libc?.close();
      libc = undefined;
    },
  };
}

const openMemory = () =>
  openLibc({
    mmap: { args: ["ptr", "usize", "i32", "i32", "i32", "i64"], returns: "ptr" },
    munmap: { args: ["ptr", "usize"], returns: "i32" },
    madvise: { args: ["ptr", "usize", "i32"], returns: "i32" },
  });
