/**
 * Matrices of floats whose rows are filled up with zeros to whole steps of the kernels. A kernel fills the end of a row
 * byte by byte, for each row and token, which takes most of the time of a product with rows as short as an adapter's.
 */
import { rowBytesOf } from "../../formats/quant/blocks.ts";
import { AppError } from "../../../base/index.ts";
import type { WeightSource } from "../../program/backend.ts";
import type { Weight } from "../../program/step.ts";
import type { Tensor } from "./interleaved.ts";
import type { Memory } from "./memory.ts";

/** ggml's ids of F32, F16 and BF16. */
export const isFloatType = (type: number): boolean => type === 0 || type === 1 || type === 30;

/** Places a filled copy of a matrix, once. Undefined if its type or its width needs none. */
type Fill = (w: Weight) => { readonly tensor: Tensor; readonly inDim: number } | undefined;

interface Options {
  readonly memory: Memory;
  /** Copies are float32. */
  readonly small: boolean;
  /** Values of a row that the kernels of floats multiply at once. */
  readonly floatStep: number;
}

export function makeFilled(source: WeightSource, { memory, small, floatStep }: Options): Fill {
  const known = new Map<string, Tensor>();
  const place = (w: Weight, inDim: number): Tensor => {
    const packed = source.read(w.name);
    checkBytes(w, packed.byteLength);
    const rows = Math.floor(packed.byteLength / rowBytesOf(w));
    const view = small ? unpacked(w, packed, rows) : packed;
    const from = view.byteLength / rows;
    const to = (from / w.inDim) * inDim;
    const { address, view: out } = memory.allocate(rows * to, "weights");
    for (let row = 0; row < rows; row++) out.set(view.subarray(row * from, (row + 1) * from), row * to);
    return { byteLength: rows * to, address };
  };
  return (w) => {
    const inDim = Math.ceil(w.inDim / floatStep) * floatStep;
    if (inDim === w.inDim || !isFloatType(w.quant.ggmlType)) return undefined;
    const tensor = known.get(w.name) ?? place(w, inDim);
    known.set(w.name, tensor);
    return { tensor, inDim };
  };
}

function unpacked({ quant, inDim }: Weight, packed: Uint8Array, rows: number): Uint8Array {
  const floats = new Float32Array(rows * inDim);
  quant.dequantize(packed, floats);
  return new Uint8Array(floats.buffer);
}

/** Throws if a tensor has too few bytes for a weight. */
export function checkBytes(w: Weight, byteLength: number): void {
  const rowBytes = rowBytesOf(w);
  const needed = ((w.experts - 1) * w.tensorRows + w.rowStart + w.outDim) * rowBytes;
  if (needed <= byteLength && Number.isInteger(rowBytes)) return;
  const shape = `${w.experts} × ${w.tensorRows} rows of ${w.inDim}`;
  throw new AppError("runner", `'${w.name}': expected ${needed} bytes for ${shape}, got ${byteLength}`);
}
