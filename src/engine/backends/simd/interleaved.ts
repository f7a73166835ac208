/** Matrices of q8_0 with eight interleaved rows: kernels/simd/interleaved.h. */
import { rowBytesOf } from "../../formats/quant/blocks.ts";
import type { WeightSource } from "../../program/backend.ts";
import type { Weight } from "../../program/step.ts";
import type { Memory } from "./memory.ts";

/** Added to the number of a matrix's type: the arithmetic of its products. */
const [INTEGERS, FLOATS] = [256, 512];
const ROWS = 8;
const BLOCK_BYTES = 34;

/** The address; the memory keeps the view. */
export interface Tensor {
  readonly byteLength: number;
  readonly address: number;
}

/** Places an interleaved copy of a matrix, once. Undefined if its type, its shape or a scale prevents it. */
export type Interleave = (w: Weight) => { readonly tensor: Tensor; readonly type: number } | undefined;

/** For small models, and if weights are copied anyway; precise runs have no kernel for it. */
export function makeInterleaved(
  source: WeightSource,
  { memory, precise, small }: { memory: Memory; precise: boolean; small: boolean },
): Interleave {
  const known = new Map<string, Tensor | undefined>();
  const place = (w: Weight): Tensor | undefined => {
    const view = source.read(w.name);
    const rowBytes = rowBytesOf(w);
    if (view.byteLength % rowBytes !== 0 || !hasFiniteScales(view)) return undefined;
    const group = rowBytes * ROWS;
    const block = memory.allocate(Math.ceil(view.byteLength / group) * group, "weights");
    interleave(wordsOf(view), rowBytes / 2, wordsOf(block.view));
    return { byteLength: view.byteLength, address: block.address };
  };
  const isWanted = !precise && (small || memory.interleaves);
  return (w) => {
    const whole = (w.experts === 1 || w.tensorRows % ROWS === 0) && w.rowStart % ROWS === 0;
    if (!isWanted || w.quant.name !== "q8_0" || !whole) return undefined;
    if (!known.has(w.name)) known.set(w.name, place(w));
    const tensor = known.get(w.name);
    return tensor && { tensor, type: w.quant.ggmlType + (small ? FLOATS : INTEGERS) };
  };
}

/** Returns whether products with matrices of this type use floats. */
export const hasFloatProducts = (type: number): boolean => (type & FLOATS) !== 0;

function hasFiniteScales(blocks: Uint8Array): boolean {
  for (let i = 1; i < blocks.length; i += BLOCK_BYTES) if ((blocks[i]! & 0x7c) === 0x7c) return false;
  return true;
}

const wordsOf = (bytes: Uint8Array): Uint16Array =>
  bytes.byteOffset % 2 === 0
    ? new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 2)
    : new Uint16Array(bytes.slice().buffer);

/**
 * For each eight rows of `width` words: their first words, then their second words, and so on; rows of zeros follow the
 * last row.
 */
function interleave(from: Uint16Array, width: number, to: Uint16Array): void {
  for (let first = 0; first < from.length; first += width * ROWS) {
    for (let row = 0; row < ROWS; row++) {
      const start = first + row * width;
      if (start === from.length) return;
      for (let i = 0; i < width; i++) to[first + i * ROWS + row] = from[start + i]!;
    }
  }
}
