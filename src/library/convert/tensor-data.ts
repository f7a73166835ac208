/**
 * Streams a converted tensor: reads rows from the source, reorders them if the heads' RoPE pairs differ, adds the shift
 * of norms that are stored minus 1, and rounds to the target type. At most one piece is in memory.
 */
import { open, type FileHandle } from "node:fs/promises";
import { AppError } from "../../base/index.ts";
import { reading } from "../../base/system.ts";
import { bf16, f16, f32, type Quant } from "../../engine/formats/index.ts";
import type { SafeTensor } from "./safetensors.ts";

/** Large compared with the overhead of a read. */
const PIECE_BYTES = 2 ** 20;
/** A head whose rows are reordered is read whole; the widest published ones have 16 MB. */
const HEAD_BYTES_MAX = 256 * 2 ** 20;

const SOURCE_TYPES: Readonly<Record<string, Quant>> = { F32: f32, F16: f16, BF16: bf16 };

export interface TensorSource {
  readonly tensor: SafeTensor;
  /**
   * Heads whose rows are reordered from halves, (2, headDim / 2), to pairs, (headDim / 2, 2); 0: rows stay in place.
   */
  readonly pairedHeads: number;
  /** Added to every weight. */
  readonly shift: number;
  /** The file stores the transposed matrix; all of it is read at once. */
  readonly isTransposed?: boolean;
}

/** Slowest-varying dimension first, after transposing. */
export const shapeOf = ({ tensor, isTransposed }: TensorSource): readonly number[] =>
  isTransposed ? tensor.shape.toReversed() : tensor.shape;

/** Throws `unsupported` for types other than plain floats. */
export function sourceType({ name, dtype }: SafeTensor, label: string): Quant {
  const type = Object.hasOwn(SOURCE_TYPES, dtype) ? SOURCE_TYPES[dtype] : undefined;
  if (type) return type;
  const known = Object.keys(SOURCE_TYPES).join(", ");
  throw new AppError("unsupported", `${label}: tensor '${name}': expected weights of ${known}, got ${dtype}`);
}

/** Throws `bad_file` if the rows cannot be divided among the heads. */
export function checkHeads(source: TensorSource, label: string): void {
  const { tensor, pairedHeads, isTransposed } = source;
  if (isTransposed && tensor.byteLength > HEAD_BYTES_MAX) {
    throw new AppError("too_large", `${label}: tensor '${tensor.name}': a matrix of ${tensor.byteLength} bytes`);
  }
  if (pairedHeads === 0) return;
  const rows = shapeOf(source)[0] ?? 0;
  const headDim = rows / pairedHeads;
  if (!Number.isInteger(headDim) || headDim % 2 !== 0) {
    const expected = `${pairedHeads} heads of an even number of rows`;
    throw new AppError("bad_file", `${label}: tensor '${tensor.name}': expected ${expected}, got ${rows} rows`);
  }
  if (tensor.byteLength / pairedHeads > HEAD_BYTES_MAX) {
    const found = tensor.byteLength / pairedHeads;
    throw new AppError("too_large", `${label}: tensor '${tensor.name}': a head of ${found} bytes`);
  }
}

/**
 * Yields weights in the type `to`. Throws `bad_file` if the file ends early, and `unsupported` if a weight overflows.
 */
export async function* tensorData(source: TensorSource, to: Quant, label: string): AsyncGenerator<Uint8Array> {
  const { tensor, pairedHeads, shift, isTransposed = false } = source;
  const from = sourceType(tensor, label);
  const headBytes = pairedHeads > 0 ? tensor.byteLength / pairedHeads : 0;
  const heads = headBytes > 0 ? headBytes * Math.max(1, Math.floor(PIECE_BYTES / headBytes)) : PIECE_BYTES;
  const pieceBytes = isTransposed ? tensor.byteLength : heads;
  await using file = await reading(`${label}: tensor '${tensor.name}'`, open(tensor.path, "r"));
  for (let done = 0; done < tensor.byteLength; done += pieceBytes) {
    const length = Math.min(pieceBytes, tensor.byteLength - done);
    const read = await readPiece(file, { tensor, offset: done, length, label });
    const bytes = isTransposed ? transposed(read, tensor.shape, from.blockBytes) : read;
    if (headBytes > 0) {
      const rowBytes = tensor.byteLength / shapeOf(source)[0]!; // heads have rows
      for (let at = 0; at < length; at += headBytes) pairRows(bytes.subarray(at, at + headBytes), rowBytes);
    }
    yield from === to && shift === 0 ? bytes : roundTo(bytes, { from, to, shift, what: `${label}: '${tensor.name}'` });
  }
}

function transposed(bytes: Uint8Array, [rows = 0, columns = 0]: readonly number[], itemBytes: number): Uint8Array {
  const out = new Uint8Array(bytes.length);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const from = (row * columns + column) * itemBytes;
      const to = (column * rows + row) * itemBytes;
      for (let i = 0; i < itemBytes; i++) out[to + i] = bytes[from + i]!; // in range: both have rows * columns items
    }
  }
  return out;
}

interface Piece {
  readonly tensor: SafeTensor;
  /** Relative to the tensor. */
  readonly offset: number;
  readonly length: number;
  readonly label: string;
}

async function readPiece(file: FileHandle, { tensor, offset, length, label }: Piece): Promise<Uint8Array> {
  const what = `${label}: tensor '${tensor.name}'`;
  const bytes = new Uint8Array(length);
  for (let done = 0; done < length;) {
    const { bytesRead } = await reading(what, file.read(bytes, done, length - done, tensor.offset + offset + done));
    if (bytesRead === 0) {
      const found = `an end after ${offset + done}`;
      throw new AppError("bad_file", `${what}: expected ${tensor.byteLength} bytes, got ${found}`);
    }
    done += bytesRead;
  }
  return bytes;
}

/** Rows i and i + headDim / 2, which RoPE rotates together, become rows 2i and 2i + 1. */
function pairRows(head: Uint8Array, rowBytes: number): void {
  const halves = head.slice();
  const half = head.length / rowBytes / 2;
  for (let i = 0; i < half; i++) {
    for (const second of [0, 1]) {
      const from = (second * half + i) * rowBytes;
      head.set(halves.subarray(from, from + rowBytes), (2 * i + second) * rowBytes);
    }
  }
}

interface Rounding {
  readonly from: Quant;
  readonly to: Quant;
  readonly shift: number;
  readonly what: string;
}

function roundTo(bytes: Uint8Array, { from, to, shift, what }: Rounding): Uint8Array {
  const weights = new Float32Array(bytes.length / from.blockBytes);
  from.dequantize(bytes, weights);
  if (shift !== 0) for (let i = 0; i < weights.length; i++) weights[i]! += shift;
  const out = new Uint8Array(weights.length * to.blockBytes);
  to.quantize?.(weights, out);
  if (to === f16) checkFits(weights, out, what);
  return out;
}

/** Refuses finite weights that become infinite: the model would only answer NaN. */
function checkFits(weights: Float32Array, out: Uint8Array, what: string): void {
  for (let i = 0; i < weights.length; i++) {
    const isInfinite = (out[2 * i + 1]! & 0x7c) === 0x7c && out[2 * i] === 0 && (out[2 * i + 1]! & 3) === 0;
    if (!isInfinite || Math.abs(weights[i]!) === Infinity) continue;
    throw new AppError("unsupported", `${what}: expected weights that F16 can hold, up to 65504, got ${weights[i]}`);
  }
}
