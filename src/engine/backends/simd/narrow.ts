/**
 * Matrices of floats with few columns, such as the second halves of adapters, copied as the kernels' panels:
 * (panels, columns, rows of a panel). So the kernels add up whole registers, one for each column, and need no sum
 * across a register for each row.
 */
import { rowBytesOf } from "../../formats/quant/blocks.ts";
import { AppError } from "../../../base/index.ts";
import type { WeightSource } from "../../program/backend.ts";
import type { Weight } from "../../program/step.ts";
import type { Tensor } from "./interleaved.ts";
import type { Memory } from "./memory.ts";

/** Added to the number of a matrix's type: `NARROW_MATRIX` of ops/linear.h. */
const NARROW_MATRIX = 1024;
/** Rows longer than this are fast without a copy. */
const COLUMNS_MAX = 128;
const [F32, F16, BF16] = [0, 1, 30]; // ggml's ids

export const isFloatType = (type: number): boolean => type === F32 || type === F16 || type === BF16;

/** Tells if a matrix is kept as panels. */
export const isNarrow = (type: number): boolean => (type & NARROW_MATRIX) !== 0;

export interface NarrowMatrix extends Tensor {
  /** The id of its values' type, plus `NARROW_MATRIX`. */
  readonly type: number;
  readonly rowBytes: number;
  /** Bytes of a matrix of a stack. */
  readonly expertBytes: number;
}

interface Options {
  readonly memory: Memory;
  /** `PANEL_ROWS` of vec.h. */
  readonly panelRows: number;
}

/** Copies a matrix, once. Undefined if its values have another type than floats, or its rows are long. */
export function makeNarrow(
  source: WeightSource,
  { memory, panelRows }: Options,
): (w: Weight) => NarrowMatrix | undefined {
  const known = new Map<string, NarrowMatrix>();
  const place = (w: Weight): NarrowMatrix => {
    const { outDim, inDim, experts, quant } = w;
    const packed = source.read(w.name);
    checkBytes(w, packed.byteLength);
    const isHalf = quant.ggmlType === F16;
    const [values, size] = isHalf ? [wordsOf(packed), 2] : [floatsOf(w, packed), 4];
    const rowBytes = inDim * size;
    const rows = Math.ceil(outDim / panelRows) * panelRows;
    const { address, view } = memory.allocate(experts * rows * rowBytes, "weights");
    const { buffer, byteOffset } = view;
    const count = experts * rows * inDim;
    const out = isHalf ? new Uint16Array(buffer, byteOffset, count) : new Float32Array(buffer, byteOffset, count);
    for (let expert = 0; expert < experts; expert++) {
      const from = (expert * w.tensorRows + w.rowStart) * inDim;
      const to = expert * rows * inDim;
      for (let row = 0; row < outDim; row++) {
        const column = row % panelRows;
        const panel = to + (row - column) * inDim + column;
        for (let i = 0; i < inDim; i++) out[panel + i * panelRows] = values[from + row * inDim + i]!;
      }
    }
    const type = NARROW_MATRIX + (isHalf ? F16 : F32);
    return { address, byteLength: view.byteLength, type, rowBytes, expertBytes: rows * rowBytes };
  };
  return (w) => {
    if (w.inDim > COLUMNS_MAX || !isFloatType(w.quant.ggmlType)) return undefined;
    const key = `${w.name} ${w.rowStart} ${w.outDim}`;
    const found = known.get(key) ?? place(w);
    known.set(key, found);
    return found;
  };
}

const wordsOf = (packed: Uint8Array): Uint16Array => {
  const { buffer, byteOffset, byteLength } = packed.byteOffset % 2 === 0 ? packed : packed.slice();
  return new Uint16Array(buffer, byteOffset, byteLength / 2);
};

function floatsOf({ quant, inDim }: Weight, packed: Uint8Array): Float32Array {
  const floats = new Float32Array(Math.floor(packed.byteLength / rowBytesOf({ quant, inDim })) * inDim);
  quant.dequantize(packed, floats);
  return floats;
}

/** Throws if a tensor has fewer bytes than a weight needs. */
export function checkBytes(w: Weight, byteLength: number): void {
  const rowBytes = rowBytesOf(w);
  const needed = ((w.experts - 1) * w.tensorRows + w.rowStart + w.outDim) * rowBytes;
  if (needed <= byteLength && Number.isInteger(rowBytes)) return;
  const shape = `${w.experts} × ${w.tensorRows} rows of ${w.inDim}`;
  throw new AppError("runner", `'${w.name}': expected ${needed} bytes for ${shape}, got ${byteLength}`);
}
