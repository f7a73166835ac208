/** Matrices of q8_0 whose rows lie eight beside each other: kernels/simd/interleaved.h. */
import { rowBytesOf } from "../../quant/blocks.ts";
import type { WeightSource } from "../backend.ts";
import type { Weight } from "../step.ts";
import type { Memory } from "./memory.ts";

/** Is added to the number of a matrix's type. */
export const INTERLEAVED = 256;
const ROWS = 8;
const BLOCK_BYTES = 34;

/** Where it lies; its view is the memory's to keep. */
export interface Tensor {
  readonly byteLength: number;
  readonly address: number;
}

/** Places a matrix so, once. Undefined where its type, its shape, a scale or the memory forbids it. */
export function makeInterleaved(source: WeightSource, memory: Memory): (w: Weight) => Tensor | undefined {
  const known = new Map<string, Tensor | undefined>();
  const place = (w: Weight): Tensor | undefined => {
    const view = source.read(w.name);
    const rowBytes = rowBytesOf(w);
    if (view.byteLength % rowBytes !== 0 || !hasFiniteScales(view)) return undefined;
    return { byteLength: view.byteLength, address: memory.interleave!(view, rowBytes) };
  };
  return (w) => {
    const whole = (w.experts === 1 || w.tensorRows % ROWS === 0) && w.rowStart % ROWS === 0;
    if (!memory.interleave || w.quant.name !== "q8_0" || !whole) return undefined;
    if (!known.has(w.name)) known.set(w.name, place(w));
    return known.get(w.name);
  };
}

function hasFiniteScales(blocks: Uint8Array): boolean {
  for (let i = 1; i < blocks.length; i += BLOCK_BYTES) if ((blocks[i]! & 0x7c) === 0x7c) return false;
  return true;
}
