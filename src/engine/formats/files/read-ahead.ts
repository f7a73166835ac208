/**
 * Reads a mapped file into memory sequentially, which is the order of layers, at the disk's full speed; otherwise the
 * first pass would read it page by page. Does nothing if the file is in memory already, or does not fit.
 */
import { AppError } from "../../../base/index.ts";
import { fitsInMemory } from "./fits-in-memory.ts";

/** Bytes per request; a multiple of every system's page size. */
const PIECE_BYTES = 16 * 2 ** 20;
/** Pieces in flight. */
const AHEAD = 4;
/** Share of its bytes from which a file counts as in memory. */
const ENOUGH = 0.98;
/** Bytes that are sampled: checking every page of a large file takes longer than reading its header. */
const WHOLE_BYTES = 128 * 2 ** 20;
const SAMPLES = 1024;
const PAGE_BYTES = 4096;
const POLL_MS = 5;
/** Checks for a missing piece before the next one is requested. */
const LOOKS_MAX = 2000;

interface Options {
  readonly byteLength: number;
  readonly resident?: (offset: number, length: number) => number;
  readonly advise?: (offset: number, length: number) => void;
  readonly isOpen: () => boolean;
  readonly onProgress: (fraction: number) => void;
  readonly signal: AbortSignal | undefined;
  /** For tests. */
  readonly available?: number;
}

/** Throws `cancelled` if the signal is aborted. */
export async function readAhead(options: Options): Promise<void> {
  const { byteLength, resident, advise, isOpen, onProgress, signal, available } = options;
  if (!resident || !advise || byteLength === 0) return;
  const missing = byteLength - residentBytes(byteLength, resident);
  if (missing <= (1 - ENOUGH) * byteLength || !fitsInMemory(byteLength, { available })) return;
  const lengthAt = (offset: number): number => Math.min(PIECE_BYTES, byteLength - offset);
  let asked = 0;
  for (let offset = 0; offset < byteLength; offset += PIECE_BYTES) {
    for (; asked < Math.min(byteLength, offset + AHEAD * PIECE_BYTES); asked += PIECE_BYTES) {
      advise(asked, lengthAt(asked));
    }
    const isThere = (): boolean => resident(offset, lengthAt(offset)) >= ENOUGH * lengthAt(offset);
    for (let look = 0; look === 0 || (look < LOOKS_MAX && !isThere()); look++) {
      if (signal?.aborted) throw new AppError("cancelled", "request canceled");
      await Bun.sleep(look === 0 ? 1 : POLL_MS); // a piece may arrive at once, but an abort must still be noticed
      if (!isOpen()) return;
    }
    onProgress(Math.min(1, (offset + lengthAt(offset)) / byteLength));
  }
}

/** Bytes of a file in memory; an estimate for a large one. */
function residentBytes(byteLength: number, resident: (offset: number, length: number) => number): number {
  if (byteLength <= WHOLE_BYTES) return resident(0, byteLength);
  const pages = Math.floor(byteLength / PAGE_BYTES);
  let there = 0;
  for (let i = 0; i < SAMPLES; i++) {
    if (resident(PAGE_BYTES * Math.floor((pages * i) / SAMPLES), PAGE_BYTES) > 0) there++;
  }
  return byteLength * (there / SAMPLES);
}
