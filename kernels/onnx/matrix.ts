/**
 * y = W · x + b for weights of any block type: `MatMulNBits` on packed integers, plus a product of the input's block sums
 * with the minima where the type has them; or float32 `FusedMatMul`.
 *
 * Default: float weights are rounded to 8 bits in blocks of 32 (as q8_0 does), and activations to 8 bits per block inside the
 * operator (`accuracy_level` 4). Precise: integer weights stay as they are, everything else is float32.
 */
import type { Weight } from "../../src/backend/step.ts";
import type { Lowering } from "./lowering.ts";
import { FLOAT_PACKING, packFloats, PACKINGS, type Packed, type Packing } from "./weights.ts";

/** One matrix: of a stack of experts, the one at `expert`. */
export interface Matrix {
  readonly w: Weight;
  readonly expert: number;
}

/** How a matrix goes into the graph. Those of one form can be stacked. */
type Form = { readonly kind: "float" } | ({ readonly kind: "blocks" } & Pick<Packing, "bits" | "block" | "mins">);

const ACCURACY_INT8 = 4; // activations as 8-bit blocks
const ACCURACY_FLOAT = 0;
/** Weights that are packed at a time: bounds what a load needs beyond the file. */
const CHUNK_WEIGHTS = 4 * 1024 * 1024;

/** Whether matrices can be applied as one. */
export function stackable(lowering: Lowering, weights: readonly Weight[]): boolean {
  const [first, ...rest] = weights.map((w) => formOf(lowering, w));
  const same = (form: Form): boolean => Bun.deepEquals(form, first);
  return first?.kind === "blocks" && rest.every(same) && weights.every((w) => w.inDim === weights[0]?.inDim);
}

/**
 * x · Wᵀ + b for matrices that are stackable or just one: (…, inDim) → (…, Σ outDim).
 * @param x value of rank 3
 * @param bias (Σ outDim) values, or undefined for none
 */
export function matMul(lowering: Lowering, x: string, matrices: readonly Matrix[], bias?: Float32Array): string {
  const { graph } = lowering;
  const first = matrices[0]!;
  const form = formOf(lowering, first.w);
  const b = bias ? graph.floats(bias) : "";
  if (form.kind === "blocks") return blockMatMul(lowering, { x, matrices, form, b });
  const product = graph.node("FusedMatMul", [x, floatWeights(lowering, first)], { transB: 1 });
  return b ? graph.node("Add", [product, b]) : product;
}

/** A float32 product whatever the mode: routers, where a small error picks another expert. */
export function floatMatMul(lowering: Lowering, x: string, w: Weight): string {
  return lowering.graph.node("FusedMatMul", [x, floatWeights(lowering, { w, expert: 0 })], { transB: 1 });
}

/** A vector as float32: norm weights, biases. */
export function vectorOf({ source }: Lowering, w: Weight): Float32Array {
  const out = new Float32Array(w.inDim * w.outDim);
  w.quant.dequantize(source.read(w.name).subarray(w.rowStart * rowBytes(w)), out);
  const scale = w.scale?.[0] ?? 1;
  if (scale !== 1) for (let i = 0; i < out.length; i++) out[i]! *= scale;
  return out;
}

const rowBytes = (w: Weight): number => (w.inDim / w.quant.blockLen) * w.quant.blockBytes;

function formOf({ precise }: Lowering, w: Weight): Form {
  const packing = PACKINGS[w.quant.name];
  if (packing) return { kind: "blocks", bits: packing.bits, block: packing.block, mins: packing.mins };
  return precise ? { kind: "float" } : { kind: "blocks", ...FLOAT_PACKING };
}

/** The packed bytes of one matrix, from its first row. */
function bytesOf({ source }: Lowering, { w, expert }: Matrix): Uint8Array {
  const from = (expert * w.tensorRows + w.rowStart) * rowBytes(w);
  return source.read(w.name).subarray(from, from + w.outDim * rowBytes(w));
}

type BlockMatMul = { x: string; matrices: readonly Matrix[]; form: Extract<Form, { kind: "blocks" }>; b: string };

function blockMatMul(lowering: Lowering, { x, matrices, form, b }: BlockMatMul): string {
  const { graph, precise } = lowering;
  const { bits, block, mins } = form;
  const k = matrices[0]!.w.inDim;
  const n = matrices.reduce((sum, { w }) => sum + w.outDim, 0);
  const blocks = Math.ceil(k / block);
  const data = graph.external("uint8", [n, blocks, (block * bits) / 8]);
  const scales = graph.external("float", [n, blocks]);
  const minima = mins ? graph.external("float", [n, blocks]) : undefined;
  if (graph.file.wanted) {
    let row = 0;
    for (const matrix of matrices) {
      const at = { data: data.offset, scales: scales.offset, mins: minima?.offset ?? 0 };
      packMatrix(lowering, matrix, { form, at, firstBlock: row * blocks });
      row += matrix.w.outDim;
    }
  }
  const inputs = [x, data.name, scales.name, ...(b ? ["", "", b] : [])];
  const accuracy = precise ? ACCURACY_FLOAT : ACCURACY_INT8;
  const product = graph.node("MatMulNBits", inputs, { K: k, N: n, bits, block_size: block, accuracy_level: accuracy });
  if (!minima) return product;
  const correction = graph.node("FusedMatMul", [blockSums(lowering, { x, block, blocks }), minima.name], { transB: 1 });
  return graph.node("Add", [product, correction]);
}

/** Sum of each block of an input: (1, rows, blocks · block) → (1, rows, blocks). Made once per input. */
function blockSums(
  { graph, blockSums: made }: Lowering,
  { x, block, blocks }: { x: string; block: number; blocks: number },
): string {
  const key = `${x} ${block}`;
  const known = made.get(key);
  if (known) return known;
  const apart = graph.node("Reshape", [x, graph.ints([0, 0, blocks, block])]);
  const reduced = graph.node("ReduceSum", [apart, graph.ints([-1])], { keepdims: 0 });
  const sums = graph.node("Reshape", [reduced, graph.ints([0, -1, blocks])]); // an empty sum has lost its shape
  made.set(key, sums);
  return sums;
}

type Target = {
  form: Extract<Form, { kind: "blocks" }>;
  at: { data: number; scales: number; mins: number };
  firstBlock: number;
};

/** Packs a matrix chunk by chunk into the file. */
function packMatrix(lowering: Lowering, matrix: Matrix, { form, at, firstBlock }: Target): void {
  const { graph, half } = lowering;
  const { w, expert } = matrix;
  const src = bytesOf(lowering, matrix);
  const rowBlocks = Math.ceil(w.inDim / form.block);
  const chunkRows = Math.max(1, Math.min(w.outDim, Math.floor(CHUNK_WEIGHTS / w.inDim)));
  const out: Packed = {
    data: new Uint8Array((chunkRows * rowBlocks * form.block * form.bits) / 8),
    scales: new Float32Array(chunkRows * rowBlocks),
    mins: new Float32Array(chunkRows * rowBlocks),
  };
  const packing = PACKINGS[w.quant.name];
  const floats = packing ? undefined : new Float32Array(w.inDim);
  for (let row = 0; row < w.outDim; row += chunkRows) {
    const rows = Math.min(chunkRows, w.outDim - row);
    const part = src.subarray(row * rowBytes(w), (row + rows) * rowBytes(w));
    if (packing) packing.pack(part, (rows * w.inDim) / w.quant.blockLen, out, half);
    else packRows(w, { src: part, row: floats!, out }); // floats: made where there is no packing
    const factor = w.scale?.[expert] ?? 1;
    if (factor !== 1) multiply(out, factor);
    const block = firstBlock + row * rowBlocks;
    const count = rows * rowBlocks;
    const blockBytes = (form.block * form.bits) / 8;
    graph.file.write(at.data + block * blockBytes, out.data.subarray(0, count * blockBytes));
    graph.file.write(at.scales + block * 4, bytesOfFloats(out.scales, count));
    if (form.mins) graph.file.write(at.mins + block * 4, bytesOfFloats(out.mins, count));
    lowering.packed(rows * w.inDim);
  }
}

function packRows(w: Weight, { src, row, out }: { src: Uint8Array; row: Float32Array; out: Packed }): void {
  const bytes = rowBytes(w);
  const blocks = Math.ceil(w.inDim / FLOAT_PACKING.block);
  for (let r = 0; r * bytes < src.length; r++) {
    w.quant.dequantize(src.subarray(r * bytes, (r + 1) * bytes), row);
    packFloats(row, out, r * blocks);
  }
}

function multiply({ scales, mins }: Packed, factor: number): void {
  for (let i = 0; i < scales.length; i++) scales[i]! *= factor;
  for (let i = 0; i < mins.length; i++) mins[i]! *= factor;
}

/** A matrix as float32, (outDim, inDim), in the file. */
function floatWeights(lowering: Lowering, matrix: Matrix): string {
  const { graph } = lowering;
  const { w, expert } = matrix;
  const { name, offset } = graph.external("float", [w.outDim, w.inDim]);
  if (!graph.file.wanted) return name;
  const src = bytesOf(lowering, matrix);
  const chunkRows = Math.max(1, Math.min(w.outDim, Math.floor(CHUNK_WEIGHTS / w.inDim)));
  const out = new Float32Array(chunkRows * w.inDim);
  const factor = w.scale?.[expert] ?? 1;
  for (let row = 0; row < w.outDim; row += chunkRows) {
    const rows = Math.min(chunkRows, w.outDim - row);
    const part = out.subarray(0, rows * w.inDim);
    w.quant.dequantize(src.subarray(row * rowBytes(w)), part);
    if (factor !== 1) for (let i = 0; i < part.length; i++) part[i]! *= factor;
    graph.file.write(offset + row * w.inDim * 4, bytesOfFloats(part, part.length));
    lowering.packed(part.length);
  }
  return name;
}

const bytesOfFloats = (values: Float32Array, count: number): Uint8Array =>
  new Uint8Array(values.buffer, values.byteOffset, count * 4);
