/**
 * y = W (outDim, inDim) · x + b for weights of any block type: `MatMulNBits` on packed integers, plus a product of the
 * input's block sums with the minima if the type has them; or float32 `FusedMatMul`.
 *
 * Default: float weights of 16 bits are rounded to 8 (`weights.ts`), and activations to 8 bits per block inside the
 * operator (`accuracy_level` 4). An encoder's float weights are not rounded: its vectors are compared with others to
 * the fourth digit, and many texts at once are as fast. Precise: integer weights stay unchanged, everything else is
 * float32.
 */
import { rowBytesOf } from "../../src/engine/formats/quant/blocks.ts";
import type { Weight } from "../../src/engine/program/step.ts";
import type { Lowering } from "./lowering.ts";
import { addLowRank, leftMatMul } from "./low-rank.ts";
import { checkFinite, packMatrix, writeFloats, writeTransposed, type Matrix, type MinimaPlace } from "./pack.ts";
import { FLOAT_PACKING, PACKINGS, ROUNDED, type Packing } from "./weights.ts";

export type { Matrix };

/** The form of a matrix in the graph. Matrices of one form can be stacked. */
type BlockForm = Pick<Packing, "bits" | "block" | "mins">;
type Form = { readonly kind: "float" } | ({ readonly kind: "blocks" } & BlockForm);

const ACCURACY_INT8 = 4; // activations as 8-bit blocks
const ACCURACY_FLOAT = 0;

/** Returns whether matrices can be applied as one. */
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
  const { precise, encoder } = lowering;
  const product = unchanged(lowering, x, matrices, bias);
  return addLowRank(lowering, { x, product, matrices, isFloat: precise || encoder });
}

/** The product without low-rank changes. */
function unchanged(lowering: Lowering, x: string, matrices: readonly Matrix[], bias?: Float32Array): string {
  const { graph } = lowering;
  const first = matrices[0]!;
  const form = formOf(lowering, first.w);
  const b = bias ? graph.floats(bias) : "";
  if (form.kind === "blocks") return blockMatMul(lowering, { x, matrices, form, b });
  const product = lowering.encoder ? packedMatMul(lowering, x, first) : plainMatMul(lowering, x, first);
  return b ? graph.node("Add", [product, b]) : product;
}

function plainMatMul(lowering: Lowering, x: string, matrix: Matrix): string {
  const { graph } = lowering;
  const { name, offset } = graph.external("float", [matrix.w.outDim, matrix.w.inDim]);
  writeFloats(lowering, matrix, offset);
  return graph.node("FusedMatMul", [x, name], { transB: 1 });
}

/** With the weights as the constant right operand, which the library packs. It cannot load those from a cache. */
function packedMatMul(lowering: Lowering, x: string, matrix: Matrix): string {
  const { graph } = lowering;
  const { name, offset } = graph.external("float", [matrix.w.inDim, matrix.w.outDim]);
  writeTransposed(lowering, matrix, offset);
  return graph.node("MatMul", [x, name]);
}

/**
 * A float32 product in any mode, for routers, where a small error changes the expert: (1, rows, inDim) → (1, rows,
 * outDim).
 */
export function floatMatMul(lowering: Lowering, x: string, w: Weight): string {
  const { name, offset } = lowering.graph.external("float", [w.outDim, w.inDim]);
  writeFloats(lowering, { w, expert: 0 }, offset);
  const product = leftMatMul(lowering, x, name);
  return addLowRank(lowering, { x, product, matrices: [{ w, expert: 0 }], isFloat: true });
}

/** Rows of a float32 table by index: (batch, tokens) int64 → (batch, tokens, inDim). */
export function gatherRows(lowering: Lowering, table: Weight, indexes: string): string {
  const { graph } = lowering;
  const { name, offset } = graph.external("float", [table.outDim, table.inDim]);
  writeFloats(lowering, { w: table, expert: 0 }, offset);
  return graph.node("Gather", [name, indexes], { axis: 0 });
}

/** A vector as float32: norm weights, biases. Throws `bad_file` for NaN or Infinity. */
export function vectorOf({ source }: Lowering, w: Weight): Float32Array {
  const out = new Float32Array(w.inDim * w.outDim);
  w.quant.dequantize(source.read(w.name).subarray(w.rowStart * rowBytesOf(w)), out);
  const scale = w.scale?.[0] ?? 1;
  if (scale !== 1) for (let i = 0; i < out.length; i++) out[i]! *= scale;
  checkFinite({ source }, w, out);
  return out;
}

function formOf({ precise, encoder }: Lowering, w: Weight): Form {
  const packing = (!precise && ROUNDED[w.quant.name]) || PACKINGS[w.quant.name];
  if (packing) return { kind: "blocks", bits: packing.bits, block: packing.block, mins: packing.mins };
  // Files keep few matrices in 32 bits, such as MoE routers, where a small error changes the expert.
  return precise || encoder || w.quant.name === "f32" ? { kind: "float" } : { kind: "blocks", ...FLOAT_PACKING };
}

interface BlockMatMul {
  readonly x: string;
  readonly matrices: readonly Matrix[];
  readonly form: BlockForm;
  /** Value to add, or "". */
  readonly b: string;
}

function blockMatMul(lowering: Lowering, { x, matrices, form, b }: BlockMatMul): string {
  const { graph } = lowering;
  const { bits, block } = form;
  const k = matrices[0]!.w.inDim;
  const n = matrices.reduce((sum, { w }) => sum + w.outDim, 0);
  const blocks = Math.ceil(k / block);
  const data = graph.external("uint8", [n, blocks, (block * bits) / 8]);
  const scales = graph.external("float", [n, blocks]);
  const minima = form.mins ? makeMinima(lowering, { n, blocks }) : undefined;
  let row = 0;
  for (const matrix of matrices) {
    packMatrix(lowering, matrix, {
      form,
      data: data.offset,
      scales: scales.offset,
      minima: minima?.place,
      firstRow: row,
    });
    row += matrix.w.outDim;
  }
  const inputs = [x, data.name, scales.name, ...(b ? ["", "", b] : [])];
  const product = graph.node("MatMulNBits", inputs, { K: k, N: n, bits, block_size: block, ...accuracy(lowering) });
  if (!minima) return product;
  return graph.node("Add", [product, minima.matMul(blockSums(lowering, { x, block, blocks }))]);
}

const accuracy = ({ precise }: Lowering) => ({ accuracy_level: precise ? ACCURACY_FLOAT : ACCURACY_INT8 });

/** Minima and the product with them, (n, blocks) · block sums: float32, or rounded like float weights in that mode. */
interface Minima {
  readonly place: MinimaPlace;
  matMul(sums: string): string;
}

function makeMinima(lowering: Lowering, { n, blocks }: { n: number; blocks: number }): Minima {
  const { graph, precise } = lowering;
  if (precise) {
    const { name, offset } = graph.external("float", [n, blocks]);
    const matMul = (sums: string): string => graph.node("FusedMatMul", [sums, name], { transB: 1 });
    return { place: { kind: "float", offset }, matMul };
  }
  const { bits, block } = FLOAT_PACKING;
  const count = Math.ceil(blocks / block);
  const data = graph.external("uint8", [n, count, block]);
  const scales = graph.external("float", [n, count]);
  const attributes = { K: blocks, N: n, bits, block_size: block, ...accuracy(lowering) };
  const matMul = (sums: string): string => graph.node("MatMulNBits", [sums, data.name, scales.name], attributes);
  return { place: { kind: "blocks", data: data.offset, scales: scales.offset }, matMul };
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
