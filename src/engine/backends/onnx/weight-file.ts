/**
 * The file of packed weights beside a graph: written once, sequentially or with random access, then mapped by ONNX
 * Runtime.
 */
import { closeSync, ftruncateSync, openSync, writeSync } from "node:fs";
import type { WeightFile } from "../../../../kernels/onnx/graph.ts";

const ALIGNMENT = 64; // a cache line, valid for every element type

/** Reserves offsets without a file, to find out a graph's size before its weights are needed. */
export function planWeightFile(name: string): WeightFile & { readonly byteLength: () => number } {
  let end = 0;
  return {
    name,
    wanted: false,
    byteLength: () => end,
    reserve(byteLength) {
      const offset = end;
      end = Math.ceil((offset + byteLength) / ALIGNMENT) * ALIGNMENT;
      return offset;
    },
    write() {},
  };
}

/** Creates the file; call `close` when everything is written. */
export function createWeightFile(path: string, name: string): WeightFile & { close(): void } {
  const file = openSync(path, "wx", 0o600);
  const plan = planWeightFile(name);
  return {
    ...plan,
    wanted: true,
    write(offset, bytes) {
      for (let done = 0; done < bytes.length;) done += writeSync(file, bytes, done, bytes.length - done, offset + done);
    },
    close() {
      ftruncateSync(file, plan.byteLength());
      closeSync(file);
    },
  };
}
