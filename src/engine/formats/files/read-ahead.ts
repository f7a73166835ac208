/**
 * Reads a mapped file into memory in its order, which is that of the layers: what a first pass would wait for page by
 * page comes as fast as the disk gives it. Nothing is done where it is there already, or does not fit.
 */
import { freemem } from "node:os";
import { AppError } from "../../../base/index.ts";

/** Bytes that are asked for at once; a multiple of every system's pages. */
const PIECE_BYTES = 16 * 2 ** 20;
/** Pieces on their way. */
const AHEAD = 4;
/** A file as good as in memory. */
const ENOUGH = 0.98;
const MEMORY_SHARE = 0.8;
/** To look at every page of a large file takes longer than its header does: so many tell as well. */
const WHOLE_BYTES = 128 * 2 ** 20;
const SAMPLES = 1024;
const PAGE_BYTES = 4096;
const POLL_MS = 5;
/** Looks at a piece that does not come; then the next is asked for. */
const LOOKS_MAX = 2000;

interface Options {
  readonly byteLength: number;
  readonly resident?: (offset: number, length: number) => number;
  readonly advise?: (offset: number, length: number) => void;
  readonly isOpen: () => boolean;
  readonly onProgress: (fraction: number) => void;
  readonly signal: AbortSignal | undefined;
  readonly freeBytes?: () => number;
}

/** Throws `cancelled` where the signal is aborted. */
export async function readAhead(options: Options): Promise<void> {
  const { byteLength, resident, advise, isOpen, onProgress, signal, freeBytes = freemem } = options;
  if (!resident || !advise || byteLength === 0) return;
  const missing = byteLength - residentBytes(byteLength, resident);
  if (missing <= (1 - ENOUGH) * byteLength || missing > MEMORY_SHARE * freeBytes()) return;
  const lengthAt = (offset: number): number => Math.min(PIECE_BYTES, byteLength - offset);
  let asked = 0;
  for (let offset = 0; offset < byteLength; offset += PIECE_BYTES) {
    for (; asked < Math.min(byteLength, offset + AHEAD * PIECE_BYTES); asked += PIECE_BYTES) {
      advise(asked, lengthAt(asked));
    }
    const isThere = (): boolean => resident(offset, lengthAt(offset)) >= ENOUGH * lengthAt(offset);
    for (let look = 0; look === 0 || (look < LOOKS_MAX && !isThere()); look++) {
      if (signal?.aborted) throw new AppError("cancelled", "request canceled");
      await Bun.sleep(look === 0 ? 1 : POLL_MS); // a piece may be there at once, an abort must be heard all the same
      if (!isOpen()) return;
    }
    onProgress(Math.min(1, (offset + lengthAt(offset)) / byteLength));
  }
}

/** How much of a file is in memory; of a large one about. */
function residentBytes(byteLength: number, resident: (offset: number, length: number) => number): number {
  if (byteLength <= WHOLE_BYTES) return resident(0, byteLength);
  const pages = Math.floor(byteLength / PAGE_BYTES);
  let there = 0;
  for (let i = 0; i < SAMPLES; i++) {
    if (resident(PAGE_BYTES * Math.floor((pages * i) / SAMPLES), PAGE_BYTES) > 0) there++;
  }
  return byteLength * (there / SAMPLES);
}
