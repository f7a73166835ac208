/**
 * Streams a converted tensor: reads rows from the source, reorders them where a GGUF has another order, changes values,
 * such as norms that are stored minus 1, and rounds to the target type. At most one piece is in memory, or one short
 * tensor.
 */
import { open, type FileHandle } from "node:fs/promises";
import { AppError } from "../../base/index.ts";
import { reading } from "../../base/system.ts";
import { bf16, f16, f32, i32, type Quant } from "../../engine/formats/index.ts";
import type { RowSelection } from "./architecture.ts";
import type { SafeTensor } from "./safetensors.ts";

/** Large compared with the overhead of a read. */
const PIECE_BYTES = 2 ** 20;
/** Limit of a head whose rows are reordered, because it is read as a whole; the largest published heads have 16 MB. */
const HEAD_BYTES_MAX = 256 * 2 ** 20;
/** Below this many bytes, reading rows one by one costs more than reading all. */
const SHORT_ROW_BYTES = 4096;

const SOURCE_TYPES: Readonly<Record<string, Quant>> = { F32: f32, F16: f16, BF16: bf16 };

export interface TensorSource {
  readonly tensor: SafeTensor;
  /**
   * Heads whose rows are reordered from halves, (2, headDim / 2), to pairs, (headDim / 2, 2); 0: rows stay in place.
   */
  readonly pairedHeads: number;
  /** Applied to every weight. */
  readonly value?: ((weight: number) => number) | undefined;
  /** A vector by which this one is multiplied. */
  readonly factor?: SafeTensor | undefined;
  /** The file stores the transposed matrix, or several, (count, inDim, outDim); all is read at once. */
  readonly isTransposed?: boolean;
  /** The order of equal parts of the transposed matrix. */
  readonly groups?: readonly number[] | undefined;
  /** The rows to read; absent: all, in order. */
  readonly rows?: RowSelection | undefined;
}

/** Slowest-varying dimension first, after transposing. */
export const shapeOf = ({ tensor, isTransposed, rows }: TensorSource): readonly number[] =>
  rows?.shape ?? (isTransposed ? [...tensor.shape.slice(0, -2), ...tensor.shape.slice(-2).toReversed()] : tensor.shape);

/** Throws `unsupported` for types other than plain floats. */
export function sourceType({ name, dtype }: SafeTensor, label: string): Quant {
  const type = Object.hasOwn(SOURCE_TYPES, dtype) ? SOURCE_TYPES[dtype] : undefined;
  if (type) return type;
  const known = Object.keys(SOURCE_TYPES).join(", ");
  throw new AppError("unsupported", `${label}: tensor '${name}': expected weights of ${known}, got ${dtype}`);
}

/** Throws `bad_file` if the rows cannot be divided among the heads. */
export function checkHeads(source: TensorSource, label: string): void {
  const { tensor, pairedHeads, isTransposed, groups = [] } = source;
  const dims = tensor.shape.length;
  const isDivided = groups.length === 0 || shapeOf(source)[0]! % groups.length === 0;
  if (isTransposed && (dims < 2 || dims > 3 || !isDivided)) {
    const expected = groups.length === 0 ? "a matrix, or several" : `a transposed matrix of ${groups.length} parts`;
    const got = `(${tensor.shape.join(", ")})`;
    throw new AppError("bad_file", `${label}: tensor '${tensor.name}': expected ${expected}, got ${got}`);
  }
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

/** Throws `bad_file` for a factor of another length. */
export function checkFactor({ tensor, factor }: TensorSource, label: string): void {
  const count = ({ shape }: SafeTensor): number => shape.reduce((all, size) => all * size, 1);
  if (!factor || (count(factor) === count(tensor) && tensor.byteLength <= HEAD_BYTES_MAX)) return;
  const what = `${label}: tensor '${factor.name}'`;
  throw new AppError("bad_file", `${what}: expected ${count(tensor)} factors, got ${count(factor)}`);
}

/** A whole tensor. */
async function weightsOf(tensor: SafeTensor, label: string): Promise<Float32Array> {
  await using file = await reading(`${label}: tensor '${tensor.name}'`, open(tensor.path, "r"));
  const bytes = await readPiece(file, { tensor, offset: 0, length: tensor.byteLength, label });
  const from = sourceType(tensor, label);
  const weights = new Float32Array(bytes.length / from.blockBytes);
  from.dequantize(bytes, weights);
  return weights;
}

/**
 * Yields weights in the type `to`. Throws `bad_file` if the file ends early, and `unsupported` if a weight overflows.
 */
export async function* tensorData(source: TensorSource, to: Quant, label: string): AsyncGenerator<Uint8Array> {
  const { tensor, pairedHeads, value, isTransposed = false } = source;
  if (to === i32) {
    yield* tableData(tensor, label);
    return;
  }
  const from = sourceType(tensor, label);
  const rounding = { from, to, value, what: `${label}: '${tensor.name}'` };
  if (source.factor) {
    const [weights, factors] = [await weightsOf(tensor, label), await weightsOf(source.factor, label)];
    const products = weights.map((weight, i) => weight * factors[i]!); // as many as weights: see checkFactor
    yield roundTo(new Uint8Array(products.buffer), { ...rounding, from: f32 });
    return;
  }
  if (source.rows?.order) {
    yield* chosenRows(source.rows, { tensor, rounding, label });
    return;
  }
  const headBytes = pairedHeads > 0 ? tensor.byteLength / pairedHeads : 0;
  const heads = headBytes > 0 ? headBytes * Math.max(1, Math.floor(PIECE_BYTES / headBytes)) : PIECE_BYTES;
  const pieceBytes = isTransposed ? tensor.byteLength : heads;
  await using file = await reading(`${label}: tensor '${tensor.name}'`, open(tensor.path, "r"));
  for (let done = 0; done < tensor.byteLength; done += pieceBytes) {
    const length = Math.min(pieceBytes, tensor.byteLength - done);
    const read = await readPiece(file, { tensor, offset: done, length, label });
    const bytes = isTransposed ? inGroups(transposed(read, tensor.shape, from.blockBytes), source.groups) : read;
    if (headBytes > 0) {
      const rowBytes = tensor.byteLength / shapeOf(source)[0]!; // heads have rows
      for (let at = 0; at < length; at += headBytes) pairRows(bytes.subarray(at, at + headBytes), rowBytes);
    }
    yield roundTo(bytes, rounding);
  }
}

/** Whole numbers of 32 bits. Throws `bad_file` for one that is larger. */
async function* tableData(tensor: SafeTensor, label: string): AsyncGenerator<Uint8Array> {
  const isLong = tensor.dtype === "I64";
  await using file = await reading(`${label}: tensor '${tensor.name}'`, open(tensor.path, "r"));
  for (let done = 0; done < tensor.byteLength; done += PIECE_BYTES) {
    const length = Math.min(PIECE_BYTES, tensor.byteLength - done);
    const bytes = await readPiece(file, { tensor, offset: done, length, label });
    if (!isLong) {
      yield bytes;
      continue;
    }
    const numbers = Array.from(new BigInt64Array(bytes.buffer, bytes.byteOffset, length / 8), Number);
    const large = numbers.find((number) => number !== Math.trunc(number) || Math.abs(number) >= 2 ** 31);
    if (large !== undefined)
      throw new AppError("bad_file", `${label}: '${tensor.name}': expected numbers of 32 bits, got ${large}`);
    yield new Uint8Array(Int32Array.from(numbers).buffer);
  }
}

interface Rows {
  readonly tensor: SafeTensor;
  readonly rounding: Rounding;
  readonly label: string;
}

/** Reads each run of neighbouring rows at once, up to a piece; or a whole tensor with many short rows. */
async function* chosenRows(rows: RowSelection, { tensor, rounding, label }: Rows): AsyncGenerator<Uint8Array> {
  const { order = [], rowLen = tensor.shape.length > 1 ? tensor.shape.at(-1)! : 1 } = rows; // a vector has rows of one
  const rowBytes = rowLen * rounding.from.blockBytes;
  await using file = await reading(`${label}: tensor '${tensor.name}'`, open(tensor.path, "r"));
  if (rowBytes < SHORT_ROW_BYTES && tensor.byteLength <= HEAD_BYTES_MAX) {
    const all = await readPiece(file, { tensor, offset: 0, length: tensor.byteLength, label });
    const out = new Uint8Array(order.length * rowBytes);
    for (const [i, row] of order.entries()) {
      out.set(all.subarray(row * rowBytes, (row + 1) * rowBytes), i * rowBytes);
    }
    yield roundTo(out, rounding);
    return;
  }
  const runMax = Math.max(1, Math.floor(PIECE_BYTES / rowBytes));
  for (let i = 0, run = 1; i < order.length; i += run) {
    for (run = 1; run < runMax && order[i + run] === order[i]! + run;) run++;
    const place = { tensor, offset: order[i]! * rowBytes, length: run * rowBytes, label };
    yield roundTo(await readPiece(file, place), rounding);
  }
}

/** One matrix, or several in sequence. */
function transposed(bytes: Uint8Array, shape: readonly number[], itemBytes: number): Uint8Array {
  const [rows = 0, columns = 0] = shape.slice(-2);
  const out = new Uint8Array(bytes.length);
  const matrixBytes = rows * columns * itemBytes;
  for (let at = 0; at < bytes.length; at += matrixBytes) {
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        const from = at + (row * columns + column) * itemBytes;
        const to = at + (column * rows + row) * itemBytes;
        for (let i = 0; i < itemBytes; i++) out[to + i] = bytes[from + i]!; // in range: whole matrices
      }
    }
  }
  return out;
}

/** Equal parts in another order. */
function inGroups(bytes: Uint8Array, groups: readonly number[] = []): Uint8Array {
  if (groups.length === 0) return bytes;
  const length = bytes.length / groups.length;
  return Buffer.concat(groups.map((group) => bytes.subarray(group * length, (group + 1) * length)));
}

interface Piece {
  readonly tensor: SafeTensor;
  /** Relative to the tensor. */
  readonly offset: number;
  readonly length: number;
  readonly label: string;
}

/** Throws `bad_file` if the file ends early. */
export async function readPiece(file: FileHandle, { tensor, offset, length, label }: Piece): Promise<Uint8Array> {
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

export interface Rounding {
  readonly from: Quant;
  readonly to: Quant;
  readonly value: ((weight: number) => number) | undefined;
  readonly what: string;
}

export function roundTo(bytes: Uint8Array, { from, to, value, what }: Rounding): Uint8Array {
  if (from === to && !value) return bytes;
  const weights = new Float32Array(bytes.length / from.blockBytes);
  from.dequantize(bytes, weights);
  if (value) for (let i = 0; i < weights.length; i++) weights[i] = value(weights[i]!);
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
