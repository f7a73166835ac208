/** Weights for kernels: matrices in place in the file, vectors and small models as float32. */
import { rowBytesOf } from "../../formats/quant/blocks.ts";
import { f16 } from "../../formats/quant/f16.ts";
import { f32 } from "../../formats/quant/f32.ts";
import type { MatrixValues } from "../../../../kernels/simd/layout.ts";
import type { LoadOptions, WeightSource } from "../../program/backend.ts";
import type { Weight } from "../../program/step.ts";
import { unpackRows } from "../../program/unpack.ts";
import { makeInterleaved, type Tensor } from "./interleaved.ts";
import type { Memory } from "./memory.ts";
import { checkBytes, makeNarrow } from "./narrow.ts";
import type { Streams } from "./streaming/streams.ts";

export interface WeightPlaces {
  /** A matrix or a stack of matrices. Throws `runner` if the file has fewer bytes than its shape needs. */
  matrix(w: Weight): MatrixValues;
  /** A matmul weight; its rows may be interleaved, which only `linear` and `embed` can read. */
  factor(w: Weight): MatrixValues;
  /** A matmul weight with few rows. In a small model, a matrix of F16 is not unpacked: that would gain nothing. */
  short(w: Weight): MatrixValues;
  /** A matmul weight that may have few columns: see narrow.ts. Only `linear` can read it. */
  narrow(w: Weight): MatrixValues;
  /** A vector times its factor: (outDim · inDim), stacked ones in sequence. */
  vector(w: Weight): number;
  /** Constants of the lowering. */
  constant(values: Float32Array | Int32Array): number;
  /** Bytes of tensors that kernels read from the mapped file. */
  mappedBytes(): number;
}

interface WeightOptions extends Pick<LoadOptions, "precise" | "small"> {
  /** `PANEL_ROWS` of vec.h. */
  readonly panelRows: number;
  /** Set if not all weights fit in memory. */
  readonly streams?: Streams | undefined;
}

/**
 * Matrices of a small model are interleaved or unpacked at load time; otherwise float32 products would unpack them for
 * each token.
 */
export function makeWeightPlaces(
  source: WeightSource,
  memory: Memory,
  { precise, small = false, panelRows, streams }: WeightOptions,
): WeightPlaces {
  const tensors = new Map<string, Tensor>();
  const grids = new Map<string, number>();
  const mapped = makeMapped(memory, streams);

  const interleaved = makeInterleaved(source, { memory, precise, small });

  const tensor = (w: Weight, unpacked = small): Tensor => {
    const key = `${w.name} ${unpacked}`;
    const known = tensors.get(key);
    if (known) return known;
    const view = source.read(w.name);
    checkBytes(w, view.byteLength);
    const found = { byteLength: view.byteLength, address: unpacked ? unpack(w, view) : mapped.place(view, w.name) };
    tensors.set(key, found);
    return found;
  };
  const unpack = (w: Weight, view: Uint8Array): number => {
    const count = Math.floor(view.byteLength / rowBytesOf(w)) * w.inDim;
    const { address, view: out } = memory.allocate(count * 4, "weights");
    w.quant.dequantize(view, new Float32Array(out.buffer, out.byteOffset, count));
    return address;
  };
  const narrow = makeNarrow(source, { memory, panelRows });
  const matrix = (w: Weight, { byteLength, address }: Tensor, quant = small ? f32 : w.quant): MatrixValues => {
    checkBytes(w, byteLength);
    const rowBytes = rowBytesOf({ quant, inDim: w.inDim });
    const { grid } = quant;
    if (grid && !grids.has(quant.name)) grids.set(quant.name, memory.place(grid));
    return {
      data: address + w.rowStart * rowBytes,
      rowBytes,
      expertBytes: w.tensorRows * rowBytes,
      rows: w.outDim,
      outDim: w.outDim,
      type: quant.ggmlType,
      grid: grids.get(quant.name) ?? 0,
      scales: w.scale ? constant(w.scale) : 0,
    };
  };
  const factor = (w: Weight): MatrixValues => {
    const found = interleaved(w);
    return found ? { ...matrix(w, found.tensor, w.quant), type: found.type } : matrix(w, tensor(w));
  };
  const constant = (values: Float32Array | Int32Array): number => placeCopy(memory, values);
  return {
    constant,
    mappedBytes: () => mapped.bytes,
    matrix: (w) => matrix(w, tensor(w)),
    factor,
    short: (w) => (w.quant.ggmlType === f16.ggmlType ? matrix(w, tensor(w, false), w.quant) : factor(w)),
    narrow(w) {
      const found = narrow(w);
      if (!found) return factor(w);
      const { address: data, type, rowBytes, expertBytes } = found;
      const { outDim, scale } = w;
      return { data, type, rowBytes, expertBytes, rows: outDim, outDim, grid: 0, scales: scale ? constant(scale) : 0 };
    },
    vector: makeVectors(source, constant),
  };
}

function makeVectors(source: WeightSource, constant: (values: Float32Array) => number): WeightPlaces["vector"] {
  const vectors = new Map<Weight, number>();
  return (w) => {
    const known = vectors.get(w);
    if (known !== undefined) return known;
    const size = w.inDim * w.outDim;
    const values = new Float32Array(size * w.experts);
    for (let expert = 0; expert < w.experts; expert++) {
      unpackRows(source, w, { expert, first: 0, out: values.subarray(expert * size, (expert + 1) * size) });
    }
    const address = constant(values);
    vectors.set(w, address);
    return address;
  };
}

function placeCopy(memory: Memory, { buffer, byteOffset, byteLength }: Float32Array | Int32Array): number {
  const block = memory.allocate(byteLength, "a vector");
  block.view.set(new Uint8Array(buffer, byteOffset, byteLength));
  return block.address;
}

/** Places tensors, and counts the bytes that are mapped rather than copied. */
function makeMapped(memory: Memory, streams: Streams | undefined) {
  let bytes = 0;
  return {
    place(view: Uint8Array, name: string): number {
      const before = memory.bytes;
      const address = memory.place(view);
      bytes += view.byteLength - Math.min(view.byteLength, memory.bytes - before);
      return streams?.keep(name) ?? address;
    },
    get bytes(): number {
      return bytes;
    },
  };
}
