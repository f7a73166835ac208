/**
 * Writes the weights of a matrix to the file beside the graph: reads from the GGUF, packs and writes a chunk of rows at
 * a time. Does nothing if the file is only planned.
 */
import { rowBytesOf } from "../../src/engine/formats/quant/blocks.ts";
import type { WeightSource } from "../../src/engine/program/backend.ts";
import type { Weight } from "../../src/engine/program/step.ts";
import { AppError } from "../../src/base/index.ts";
import type { Lowering } from "./lowering.ts";
import { FLOAT_PACKING, packFloats, PACKINGS, ROUNDED, type Packed, type Packing } from "./weights.ts";

/** One matrix; of a stack of experts, the one at `expert`. */
export interface Matrix {
  readonly w: Weight;
  readonly expert: number;
}

/** Destination of minima, (rows, blocks): as floats, or packed like float weights. Offsets in the file. */
export type MinimaPlace =
  | { readonly kind: "float"; readonly offset: number }
  | { readonly kind: "blocks"; readonly data: number; readonly scales: number };

/** Destination of a matrix: offsets in the file, and its first row in the stack. */
export interface Place {
  readonly form: Pick<Packing, "bits" | "block" | "mins">;
  readonly data: number;
  readonly scales: number;
  readonly minima: MinimaPlace | undefined;
  readonly firstRow: number;
}

/** Weights packed at a time: bounds a load's memory beyond the file. */
const CHUNK_WEIGHTS = 4 * 1024 * 1024;

/** Packs a matrix. */
export function packMatrix(lowering: Lowering, matrix: Matrix, place: Place): void {
  const { graph, half } = lowering;
  if (!graph.file.wanted) return;
  const { w, expert } = matrix;
  const { form } = place;
  const packing = lowering.precise || !ROUNDED[w.quant.name] ? PACKINGS[w.quant.name] : undefined;
  const rowBlocks = Math.ceil(w.inDim / form.block);
  const blockBytes = (form.block * form.bits) / 8;
  const factor = w.scale?.[expert] ?? 1;
  for (const { src, row, rows } of chunksOf(lowering, matrix)) {
    const blocks = rows * rowBlocks;
    const out = makePacked(blocks, blockBytes, form.mins);
    if (packing) packing.pack(src, (rows * w.inDim) / w.quant.blockLen, out, half);
    else packRows(w, src, { out, block: form.block });
    multiply(out.scales, factor);
    multiply(out.mins, factor);
    checkFinite(lowering, w, out.scales);
    checkFinite(lowering, w, out.mins);
    const first = (place.firstRow + row) * rowBlocks;
    graph.file.write(place.data + first * blockBytes, out.data);
    graph.file.write(place.scales + first * 4, bytesOf(out.scales));
    if (place.minima) writeMinima(lowering, out.mins, { place: place.minima, row: place.firstRow + row, rowBlocks });
    lowering.packed(rows * w.inDim);
  }
}

/** Writes a matrix as float32, (outDim, inDim). */
export function writeFloats(lowering: Lowering, matrix: Matrix, offset: number): void {
  const { graph, source } = lowering;
  if (!graph.file.wanted) return;
  const { w } = matrix;
  for (const { row, rows } of chunksOf(lowering, matrix)) {
    const out = readRows(source, matrix, { first: row, count: rows });
    if (!lowering.precise) checkFinite(lowering, w, out);
    graph.file.write(offset + row * w.inDim * 4, bytesOf(out));
    lowering.packed(out.length);
  }
}

/** Writes a matrix as float32, (inDim, outDim). */
export function writeTransposed(lowering: Lowering, matrix: Matrix, offset: number): void {
  const { graph, source } = lowering;
  if (!graph.file.wanted) return;
  const { inDim, outDim } = matrix.w;
  const values = new Float32Array(inDim * outDim);
  for (const { row, rows } of chunksOf(lowering, matrix)) {
    const out = readRows(source, matrix, { first: row, count: rows });
    for (let r = 0; r < rows; r++) for (let i = 0; i < inDim; i++) values[i * outDim + row + r] = out[r * inDim + i]!;
  }
  graph.file.write(offset, bytesOf(values));
  lowering.packed(values.length);
}

/** Some rows of a matrix as float32, (count, inDim). */
export function readRows(
  source: WeightSource,
  { w, expert }: Matrix,
  { first, count }: { first: number; count: number },
): Float32Array {
  const row = expert * w.tensorRows + w.rowStart + first;
  const out = new Float32Array(count * w.inDim);
  w.quant.dequantize(source.read(w.name).subarray(row * rowBytesOf(w), (row + count) * rowBytesOf(w)), out);
  multiply(out, w.scale?.[expert] ?? 1);
  return out;
}

/** The packed rows of a matrix, some at a time. */
function* chunksOf(
  { source }: Lowering,
  { w, expert }: Matrix,
): Generator<{ src: Uint8Array; row: number; rows: number }> {
  const first = expert * w.tensorRows + w.rowStart;
  const bytes = source.read(w.name);
  const chunkRows = Math.max(1, Math.floor(CHUNK_WEIGHTS / w.inDim));
  for (let row = 0; row < w.outDim; row += chunkRows) {
    const rows = Math.min(chunkRows, w.outDim - row);
    yield { src: bytes.subarray((first + row) * rowBytesOf(w), (first + row + rows) * rowBytesOf(w)), row, rows };
  }
}

function makePacked(blocks: number, blockBytes: number, mins: boolean): Packed {
  return {
    data: new Uint8Array(blocks * blockBytes),
    scales: new Float32Array(blocks),
    mins: new Float32Array(mins ? blocks : 0),
  };
}

/** Rounds rows, through float32. */
function packRows(w: Weight, src: Uint8Array, { out, block }: { out: Packed; block: number }): void {
  const row = new Float32Array(w.inDim);
  const bytes = rowBytesOf(w);
  const blocks = Math.ceil(w.inDim / block);
  for (let r = 0; r * bytes < src.length; r++) {
    w.quant.dequantize(src.subarray(r * bytes, (r + 1) * bytes), row);
    packFloats(row, out, { at: r * blocks, block });
  }
}

type MinimaRows = { place: MinimaPlace; row: number; rowBlocks: number };

function writeMinima({ graph }: Lowering, mins: Float32Array, { place, row, rowBlocks }: MinimaRows): void {
  if (place.kind === "float") return graph.file.write(place.offset + row * rowBlocks * 4, bytesOf(mins));
  const { block } = FLOAT_PACKING;
  const count = Math.ceil(rowBlocks / block);
  const rows = mins.length / rowBlocks;
  const out = makePacked(rows * count, block, false);
  for (let r = 0; r < rows; r++)
    packFloats(mins.subarray(r * rowBlocks, (r + 1) * rowBlocks), out, { at: r * count, block });
  graph.file.write(place.data + row * count * block, out.data);
  graph.file.write(place.scales + row * count * 4, bytesOf(out.scales));
}

/** Throws `bad_file` for weights that are NaN or infinite: activations are rounded to 8 bits, which would hide NaN. */
export function checkFinite({ source }: Pick<Lowering, "source">, { name }: Weight, values: Float32Array): void {
  const found = values.find((value) => !Number.isFinite(value));
  if (found === undefined) return;
  throw new AppError("bad_file", `${source.path}: tensor '${name}': expected numbers, got ${found}`);
}

function multiply(values: Float32Array, factor: number): void {
  if (factor === 1) return;
  for (let i = 0; i < values.length; i++) values[i]! *= factor;
}

const bytesOf = (values: Float32Array): Uint8Array => new Uint8Array(values.buffer, 0, values.byteLength);
