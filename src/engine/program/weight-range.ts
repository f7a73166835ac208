/** Reads a part of a tensor, for callers that need few rows or read in pieces. */
import type { WeightSource } from "./backend.ts";

/** Bytes from `start` on, fewer than `length` if the tensor ends before. */
export function readRange(source: WeightSource, tensorName: string, start: number, length: number): Uint8Array {
  return source.readRange?.(tensorName, start, length) ?? source.read(tensorName).subarray(start, start + length);
}
