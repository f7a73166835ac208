/**
 * Weights on the device: tensors as the raw blocks of their file, in pieces that fit a binding, uploaded straight from
 * the mapped file; and vectors, unpacked to float32, in one buffer.
 */
import { rowBytesOf } from "../../formats/quant/blocks.ts";
import type { Dispatch, Piece, Vector } from "../../../../kernels/wgsl/dispatch.ts";
import { AppError, checkNotCancelled } from "../../../base/index.ts";
import type { HeldWeights, WeightSource } from "../../program/backend.ts";
import type { Weight } from "../../program/step.ts";
import { unpackRows } from "../../program/unpack.ts";
import { readRange } from "../../program/weight-range.ts";
import type { Device } from "./device.ts";
import { USAGE } from "./usage.ts";

/** Padding after the last block, which a dequantizer may read: a straddling word, or the rest of eight weights. */
export const PADDING_BYTES = 64;
/** Byte addresses inside kernels are 32-bit, and some drivers allocate at most a little less than 4 GiB at once. */
const PIECE_BYTES_MAX = 2 ** 31;
const WRITE_BYTES = 16 * 2 ** 20;
/** The queue is flushed after this many bytes: writes stay in staging memory until a submit. */
const FLUSH_BYTES = 64 * 2 ** 20;
/** Bytes that are read from the disk ahead of the writes. */
const AHEAD_BYTES = 64 * 2 ** 20;
/** Bindings begin at multiples of this on every device. (WebGPU, minStorageBufferOffsetAlignment) */
export const BINDING_ALIGN = 256;

const align = (bytes: number, to: number): number => Math.ceil(bytes / to) * to;
/** Bytes after the rows of a piece: padding, and the grid of block types that have one. */
const tailBytesOf = ({ quant }: Weight): number => PADDING_BYTES + (quant.grid?.byteLength ?? 0);

/** Divides tensors for a device: the result depends on the weight only, and is the same for all weights of a tensor. */
export function makePieces(limits: Device["facts"]["limits"], path: string): (weight: Weight) => Piece[] {
  const bindingMax = Math.min(limits.maxBufferSize, limits.maxStorageBufferBindingSize, PIECE_BYTES_MAX);
  const known = new Map<string, Piece[]>();
  return (weight) => {
    const found = known.get(weight.name);
    if (found) return found;
    const bytesMax = bindingMax - tailBytesOf(weight);
    const unit = weight.experts > 1 ? weight.tensorRows : 1;
    const rows = unit * Math.floor(bytesMax / (unit * rowBytesOf(weight)));
    if (rows <= 0) {
      const what = weight.experts > 1 ? "an expert" : "a row";
      const size = unit * rowBytesOf(weight);
      const text = `${path}: tensor '${weight.name}': the GPU binds ${bytesMax} bytes at once, ${what} takes ${size}`;
      throw new AppError("too_large", text);
    }
    const total = weight.tensorRows * weight.experts;
    const pieces = Array.from({ length: Math.ceil(total / rows) }, (_, index) => {
      const first = index * rows;
      return { index, first, count: Math.min(rows, total - first) };
    });
    known.set(weight.name, pieces);
    return pieces;
  };
}

/** A piece of a tensor on the device. */
interface Part {
  readonly weight: Weight;
  readonly piece: Piece;
  readonly buffer: GPUBuffer;
}

export interface DeviceWeights extends HeldWeights {
  readonly bytes: number;
  matrix(tensor: string, piece: number): GPUBuffer;
  vector(weight: Weight | undefined): GPUBufferBinding;
  vectors(weights: readonly Vector[]): GPUBufferBinding;
  constant(values: Float32Array | undefined): GPUBufferBinding;
  destroy(): void;
}

/** The places of all weights, before any allocation. */
export interface WeightsPlan {
  readonly vectors: Vectors;
  readonly pieces: readonly (Omit<Part, "buffer"> & { readonly size: number })[];
  readonly bytes: number;
}

/** @param matrices the program's: every weight that a dispatch reads as blocks */
export function planWeights(
  dispatches: readonly Dispatch[],
  {
    piecesOf,
    matrices,
    beside,
  }: {
    piecesOf: (weight: Weight) => readonly Piece[];
    matrices: readonly Weight[];
    /** Weights of the same file that are on the device. */
    beside: HeldWeights | undefined;
  },
): WeightsPlan {
  const vectors = placeVectors(dispatches);
  const own = matrices.filter(({ name }) => !beside?.has(name));
  const distinct = [...new Map(own.map((weight) => [weight.name, weight])).values()];
  const pieces = distinct.flatMap((weight) =>
    piecesOf(weight).map((piece) => {
      return { weight, piece, size: align(piece.count * rowBytesOf(weight) + tailBytesOf(weight), 4) };
    }),
  );
  return { vectors, pieces, bytes: pieces.reduce((sum, { size }) => sum + size, vectors.byteLength) };
}

export interface UploadOptions {
  readonly source: WeightSource;
  readonly signal: AbortSignal | undefined;
  readonly onProgress: (fraction: number) => void;
  /** Serves the weights that the plan left out. */
  readonly beside: HeldWeights | undefined;
}

/**
 * Allocates all weights, then uploads them. Throws `too_large` before any upload if they do not fit, and `cancelled`
 * between two pieces; then everything is freed.
 */
export async function uploadWeights(
  device: Device,
  { vectors, pieces, bytes }: WeightsPlan,
  options: UploadOptions,
): Promise<DeviceWeights> {
  const { source } = options;
  const usage = USAGE.storage | USAGE.copyDst;
  const buffers = await device.allocate(`${source.path}: weights`, () => [
    device.gpu.createBuffer({ label: "vectors", size: vectors.byteLength, usage }),
    ...pieces.map(({ weight, size }) => device.gpu.createBuffer({ label: weight.name, size, usage })),
  ]);
  const destroy = (): void => buffers.forEach((buffer) => buffer.destroy());
  const [vectorBuffer, ...rest] = buffers;
  const parts = pieces.map((each, i) => ({ ...each, buffer: rest[i]! })); // one per piece
  try {
    device.gpu.queue.writeBuffer(vectorBuffer!, 0, vectors.unpack(source));
    await uploadParts(device, parts, options);
  } catch (error) {
    destroy();
    throw error;
  }
  const byName = new Map(parts.map((part) => [`${part.weight.name} ${part.piece.index}`, part.buffer]));
  const names = new Set(parts.map(({ weight }) => weight.name));
  const beside = options.beside as DeviceWeights | undefined; // a session of this backend holds them
  const bind = (key: unknown): GPUBufferBinding => {
    const place = vectors.ranges.get(key) ?? { offset: 0, size: BINDING_ALIGN };
    return { buffer: vectorBuffer!, ...place };
  };
  return {
    path: source.path,
    bytes,
    has: (tensor) => names.has(tensor),
    matrix(tensor, piece) {
      const found = byName.get(`${tensor} ${piece}`) ?? beside?.matrix(tensor, piece);
      return found!; // every operand was lowered from `pieces`
    },
    vector: bind,
    vectors: bind,
    constant: bind,
    destroy,
  };
}

/** Bytes of a tensor that are written at once. */
interface Range {
  readonly part: Part;
  /** In the piece. */
  readonly at: number;
  readonly length: number;
}

function* rangesOf(parts: readonly Part[]): Generator<Range> {
  for (const part of parts) {
    const total = part.piece.count * rowBytesOf(part.weight);
    for (let at = 0; at < total; at += WRITE_BYTES) yield { part, at, length: Math.min(WRITE_BYTES, total - at) };
  }
}

async function uploadParts(
  device: Device,
  parts: readonly Part[],
  { source, signal, onProgress }: UploadOptions,
): Promise<void> {
  const ranges = [...rangesOf(parts)];
  const total = ranges.reduce((sum, { length }) => sum + length, 0);
  for (const { weight, buffer } of parts) {
    const { grid } = weight.quant;
    if (grid) write(device.gpu.queue, buffer, { at: buffer.size - grid.byteLength, bytes: new Uint8Array(grid) });
  }
  let [asked, askedBytes, done, flushed] = [0, 0, 0, 0];
  let written: Range[] = []; // since the last flush
  const flush = async (): Promise<void> => {
    await device.flush();
    for (const each of written) inFile(source, each, "release");
    written = [];
    flushed = done;
  };
  for (const range of ranges) {
    for (; asked < ranges.length && askedBytes - done < AHEAD_BYTES; asked++) {
      inFile(source, ranges[asked]!, "prefetch");
      askedBytes += ranges[asked]!.length;
    }
    write(device.gpu.queue, range.part.buffer, { at: range.at, bytes: bytesOf(source, range) });
    written.push(range);
    done += range.length;
    if (done - flushed < FLUSH_BYTES) continue;
    await flush();
    onProgress(done / total);
    checkNotCancelled(signal);
  }
  await flush();
  checkNotCancelled(signal);
}

/** Begins to read a range from the disk, or allows its memory to be freed. */
function inFile(source: WeightSource, { part, at, length }: Range, what: "prefetch" | "release"): void {
  const place = source.place?.(part.weight.name);
  place?.file[what]?.(place.offset + part.piece.first * rowBytesOf(part.weight) + at, length);
}

function bytesOf(source: WeightSource, { part: { weight, piece }, at, length }: Range): Uint8Array {
  const first = piece.first * rowBytesOf(weight);
  const bytes = readRange(source, weight.name, first + at, length);
  if (bytes.length === length) return bytes;
  const [expected, got] = [first + piece.count * rowBytesOf(weight), source.read(weight.name).length];
  throw new AppError("bad_file", `${source.path}: tensor '${weight.name}': expected ${expected} bytes, got ${got}`);
}

/** Writes bytes of any length, although only whole words can be written. */
function write(queue: GPUQueue, buffer: GPUBuffer, { at, bytes }: { at: number; bytes: Uint8Array }): void {
  const whole = bytes.length & ~3;
  // The buffer of a mapped file is not a SharedArrayBuffer.
  if (whole > 0) queue.writeBuffer(buffer, at, bytes.subarray(0, whole) as Uint8Array<ArrayBuffer>);
  if (whole === bytes.length) return;
  const rest = new Uint8Array(4);
  rest.set(bytes.subarray(whole));
  queue.writeBuffer(buffer, at + whole, rest);
}

/** All vectors and constants of a program, in sequence at offsets where a binding can begin. */
interface Vectors {
  readonly ranges: ReadonlyMap<unknown, { readonly offset: number; readonly size: number }>;
  readonly byteLength: number;
  unpack(source: WeightSource): Uint8Array<ArrayBuffer>;
}

function placeVectors(dispatches: readonly Dispatch[]): Vectors {
  const ranges = new Map<unknown, { offset: number; size: number }>();
  const fills: ((data: ArrayBuffer, source: WeightSource) => void)[] = [];
  let end = BINDING_ALIGN; // missing vectors are bound to zeros
  const place = (key: unknown, length: number, fill: (out: Float32Array, source: WeightSource) => void): void => {
    if (ranges.has(key)) return;
    const offset = end;
    ranges.set(key, { offset, size: align(4 * length, 16) });
    end = align(offset + 4 * length, BINDING_ALIGN);
    fills.push((data, source) => fill(new Float32Array(data, offset, length), source));
  };
  for (const operand of dispatches.flatMap(({ operands }) => operands)) {
    if (operand.kind === "constant" && operand.values) {
      const { values } = operand;
      place(values, values.length, (out) => out.set(values));
    }
    if (operand.kind === "vectors" && operand.weights.length > 0) {
      const { weights } = operand;
      const total = weights.reduce((sum, each) => sum + vectorLength(each), 0);
      place(weights, total, (out, source) => unpackVectors(weights, source, out));
    }
    if (operand.kind !== "vector" || !operand.weight) continue;
    const { weight } = operand;
    place(weight, vectorLength(weight), (out, source) => unpackVectors([weight], source, out));
  }
  const unpack = (source: WeightSource): Uint8Array<ArrayBuffer> => {
    const data = new Uint8Array(end);
    for (const fill of fills) fill(data.buffer, source);
    return data;
  };
  return { ranges, byteLength: end, unpack };
}

/** Number of values of a vector: of all its rows and all its experts. */
export const vectorLength = (vector: Vector): number =>
  vector instanceof Float32Array ? vector.length : vector.inDim * vector.outDim * vector.experts;

/** In sequence. */
function unpackVectors(weights: readonly Vector[], source: WeightSource, out: Float32Array): void {
  let at = 0;
  for (const weight of weights) {
    const values = out.subarray(at, at + vectorLength(weight));
    at += values.length;
    if (weight instanceof Float32Array) {
      values.set(weight);
      continue;
    }
    const each = weight.inDim * weight.outDim;
    for (let expert = 0; expert < weight.experts; expert++) {
      const own = values.subarray(expert * each, (expert + 1) * each);
      unpackRows(source, weight, { expert, first: 0, out: own });
    }
  }
}
