/** Memory and files of this machine for models that do not fit in memory. */
import { closeSync } from "node:fs";
import { toArrayBuffer, type Pointer } from "bun:ffi";
import { AppError } from "../../../base/index.ts";
import { roomForWeights } from "../../formats/files/fits-in-memory.ts";
import { reservePages, type Reserved } from "../../formats/files/reserve.ts";
import type { StreamingHost } from "../simd/streaming/streams.ts";
import { openFileReads } from "./file-reads.ts";

/**
 * Undefined on systems other than Linux.
 * @param weightBytes memory for weights; default: all that is available
 */
export function makeStreamingHost(weightBytes?: number): StreamingHost | undefined {
  if (process.platform !== "linux") return undefined;
  const areas: Reserved[] = [];
  return {
    openReads: openFileReads,
    closeFile: closeSync,
    room: (taken) => weightBytes ?? roomForWeights(taken),
    reserve(bytes) {
      const area = reservePages(bytes);
      if (!area)
        throw new AppError("too_large", `weights: expected addresses that the system grants, got ${bytes} bytes`);
      areas.push(area);
      const { address } = area;
      return {
        address,
        view: (offset, length) => new Uint8Array(toArrayBuffer((address + offset) as Pointer, 0, length)),
      };
    },
    discard: (address, bytes) => areas[0]?.discard(address, bytes), // any area can discard any address
    release() {
      for (const area of areas.splice(0)) area.release();
    },
  };
}
