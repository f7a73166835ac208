/** A part of a tensor, for those who take its bytes in pieces or want a few rows of it. */
import type { WeightSource } from "./backend.ts";

/** Bytes from `start` on, fewer than `length` where the tensor ends before. */
export function readRange(source: WeightSource, tensorName: string, start: number, length: number): Uint8Array {
  return source.readRange?.(tensorName, start, length) ?? source.read(tensorName).subarray(start, start + length);
}
