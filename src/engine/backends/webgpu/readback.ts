/** The results of a run in one buffer, in sequence: all values of some rows, candidates of the others. */
import type { TopK, TopKRequest } from "../../text/sampling/top-k.ts";
import { readAnswer, type Chooser } from "./chooser.ts";
import type { Device } from "./device.ts";
import type { PlannedResult } from "./record.ts";
import { MAP_READ } from "./usage.ts";

/** Bytes of a buffer on the device; with a request, its candidates. */
export interface Part {
  readonly buffer: GPUBuffer;
  readonly offset: number;
  readonly size: number;
  readonly request: TopKRequest | undefined;
}

/** The parts of a chunk. @param requests by wanted row */
export function partsOf(
  requests: readonly (TopKRequest | undefined)[],
  { result: { buffer, dim }, chooser }: { result: PlannedResult; chooser: Chooser | undefined },
): Part[] {
  const parts: Part[] = [];
  let [whole, asked] = [0, 0]; // the start of a run of rows without a request
  for (let row = 0; row <= requests.length; row++) {
    const request = requests[row];
    if (!request && row < requests.length) continue;
    if (row > whole) parts.push({ buffer, offset: 4 * dim * whole, size: 4 * dim * (row - whole), request: undefined });
    if (request) parts.push({ ...chooser!.answerAt(asked++, request), request }); // every request has a chooser
    whole = row + 1;
  }
  return parts;
}

/** Copies the parts to the start of `readback`; returns the number of bytes. */
export function copyParts(encoder: GPUCommandEncoder, parts: readonly Part[], readback: GPUBuffer): number {
  let at = 0;
  for (const { buffer, offset, size } of parts) {
    encoder.copyBufferToBuffer(buffer, offset, readback, at, size);
    at += size;
  }
  return at;
}

/**
 * Maps results for reading. If the session is closed meanwhile, its buffer is destroyed: then throws the error of
 * `checkOpen` in place of the device's, which gives no reason.
 */
export async function mapResults(
  { device, checkOpen }: { readonly device: Device; checkOpen(): void },
  buffer: GPUBuffer,
  size: number,
): Promise<void> {
  try {
    await device.wait(() => buffer.mapAsync(MAP_READ, 0, size));
  } finally {
    checkOpen();
  }
}

/** Appends values to `out` and then to `more`; returns candidates, undefined if a row reports a NaN logit. */
export function readParts(
  bytes: ArrayBuffer,
  parts: readonly Part[],
  [out, more]: readonly [Float32Array, Float32Array],
): TopK[] | undefined {
  const topK: TopK[] = [];
  let [at, done] = [0, 0];
  for (const { size, request } of parts) {
    if (request) {
      const top = readAnswer(new Uint32Array(bytes, at, size / 4), request);
      if (!top) return undefined;
      topK.push(top);
    } else {
      const values = new Float32Array(bytes, at, size / 4);
      if (done < out.length) out.set(values, done);
      else more.set(values);
      done += values.length;
    }
    at += size;
  }
  return topK;
}

export function allFinite(values: Float32Array): boolean {
  for (let i = 0; i < values.length; i++) if (!Number.isFinite(values[i]!)) return false;
  return true;
}
