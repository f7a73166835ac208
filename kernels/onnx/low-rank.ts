/**
 * Adds low-rank changes to a product: y + Σ b · (a · x), as two products for any number of stacked matrices and
 * changes. All `a` are stacked in one matrix; in the other, every `b` has its own rows and columns, surrounded by
 * zeros. Rounded like float weights (`matrix.ts`), unless floats are wanted.
 */
import type { Weight } from "../../src/engine/program/step.ts";
import type { Lowering } from "./lowering.ts";
import { readRows, type Matrix } from "./pack.ts";
import { FLOAT_PACKING, packFloats } from "./weights.ts";

/** Weights written at a time. */
const CHUNK_WEIGHTS = 1024 * 1024;
const ACCURACY_INT8 = 4; // activations as 8-bit blocks

/** A matrix inside a larger one. */
interface Tile extends Matrix {
  readonly row: number;
  readonly column: number;
}

/** Tiles surrounded by zeros. */
interface Mosaic {
  readonly rows: number;
  readonly columns: number;
  readonly tiles: readonly Tile[];
}

interface Product {
  /** Value of rank 3. */
  readonly x: string;
  /** The product of the unchanged matrices. */
  readonly product: string;
  readonly matrices: readonly Matrix[];
  readonly isFloat: boolean;
}

/** The product with the changes of its matrices; the same value if they have no changes. */
export function addLowRank(lowering: Lowering, { x, product, matrices, isFloat }: Product): string {
  const inDim = matrices[0]!.w.inDim;
  const tilesA: Tile[] = [];
  const tilesB: Tile[] = [];
  let rank = 0;
  let row = 0;
  for (const { w, expert } of matrices) {
    for (const { a, b } of w.lowRank ?? []) {
      tilesA.push({ w: a, expert, row: rank, column: 0 });
      tilesB.push({ w: b, expert, row, column: rank });
      rank += a.outDim;
    }
    row += w.outDim;
  }
  if (rank === 0) return product;
  const matMul = isFloat ? floatMatMul : blockMatMul;
  const inner = matMul(lowering, x, { rows: rank, columns: inDim, tiles: tilesA });
  const change = matMul(lowering, inner, { rows: row, columns: rank, tiles: tilesB });
  return lowering.graph.node("Add", [product, change]);
}

function floatMatMul(lowering: Lowering, x: string, mosaic: Mosaic): string {
  const { graph } = lowering;
  const { name, offset } = graph.external("float", [mosaic.rows, mosaic.columns]);
  writeMosaic(lowering, mosaic, (values, row) => {
    graph.file.write(offset + row * mosaic.columns * 4, bytesOf(values));
  });
  return leftMatMul(lowering, x, name);
}

/**
 * x · Wᵀ in float32: (batch, rows, inDim) → (batch, rows, outDim). The weights are the left operand: the library packs
 * constant right ones, and cannot load those back from a cache.
 * @param w a constant, (outDim, inDim)
 */
export function leftMatMul({ graph }: Lowering, x: string, w: string): string {
  const product = graph.node("MatMul", [w, graph.node("Transpose", [x], { perm: [0, 2, 1] })]);
  return graph.node("Transpose", [product], { perm: [0, 2, 1] });
}

function blockMatMul(lowering: Lowering, x: string, mosaic: Mosaic): string {
  const { graph } = lowering;
  const { bits, block } = FLOAT_PACKING;
  const { rows, columns } = mosaic;
  const blocks = Math.ceil(columns / block);
  const data = graph.external("uint8", [rows, blocks, block]);
  const scales = graph.external("float", [rows, blocks]);
  writeMosaic(lowering, mosaic, (values, row) => {
    const count = values.length / columns;
    const packed = {
      data: new Uint8Array(count * blocks * block),
      scales: new Float32Array(count * blocks),
      mins: new Float32Array(0),
    };
    for (let r = 0; r < count; r++) {
      packFloats(values.subarray(r * columns, (r + 1) * columns), packed, { at: r * blocks, block });
    }
    graph.file.write(data.offset + row * blocks * block, packed.data);
    graph.file.write(scales.offset + row * blocks * 4, bytesOf(packed.scales));
  });
  const attributes = { K: columns, N: rows, bits, block_size: block, accuracy_level: ACCURACY_INT8 };
  return graph.node("MatMulNBits", [x, data.name, scales.name], attributes);
}

/** Yields the rows of a mosaic, some at a time, with the index of the first. */
function writeMosaic(
  { graph, source, packed }: Lowering,
  { rows, columns, tiles }: Mosaic,
  write: (values: Float32Array, row: number) => void,
): void {
  if (!graph.file.wanted) return;
  const chunkRows = Math.max(1, Math.floor(CHUNK_WEIGHTS / columns));
  for (let row = 0; row < rows; row += chunkRows) {
    const end = Math.min(row + chunkRows, rows);
    const values = new Float32Array((end - row) * columns);
    for (const tile of tiles) {
      const from = Math.max(row, tile.row);
      const to = Math.min(end, tile.row + tile.w.outDim);
      if (from >= to) continue;
      const part = readRows(source, tile, { first: from - tile.row, count: to - from });
      place(part, tile.w, { values, columns, at: (from - row) * columns + tile.column });
      packed(part.length);
    }
    write(values, row);
  }
}

function place(
  part: Float32Array,
  { inDim }: Weight,
  { values, columns, at }: { values: Float32Array; columns: number; at: number },
): void {
  for (let r = 0; r * inDim < part.length; r++) values.set(part.subarray(r * inDim, (r + 1) * inDim), at + r * columns);
}

const bytesOf = (values: Float32Array): Uint8Array => new Uint8Array(values.buffer, 0, values.byteLength);
