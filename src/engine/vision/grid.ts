/** Rows on a grid: pooling, merging, and looking up positions. */
import type { Grid } from "./projector.ts";

/** The mean of each square of `side` rows; incomplete squares at the edges are dropped. (`ggml_pool_2d`) */
export function pool(rows: Float32Array, grid: Grid, side: number): Float32Array {
  const dim = rows.length / (grid.width * grid.height);
  const [width, height] = [Math.floor(grid.width / side), Math.floor(grid.height / side)];
  const out = new Float32Array(width * height * dim);
  const sums = new Float64Array(dim);
  for (let cell = 0; cell < width * height; cell++) {
    sums.fill(0);
    const [left, top] = [(cell % width) * side, Math.floor(cell / width) * side];
    for (let i = 0; i < side * side; i++) {
      const at = ((top + Math.floor(i / side)) * grid.width + left + (i % side)) * dim;
      for (let j = 0; j < dim; j++) sums[j]! += rows[at + j]!;
    }
    for (let j = 0; j < dim; j++) out[cell * dim + j] = sums[j]! / (side * side);
  }
  return out;
}

/** Patches per side that become one row of the prompt. */
export const MERGED = 2;

/** Patch indexes by blocks of two by two, so that patches of one row are adjacent: block by block, line by line. */
export function blockOrder({ width, height }: Grid): Int32Array {
  const order = new Int32Array(width * height);
  let row = 0;
  for (let y = 0; y < height; y += MERGED) {
    for (let x = 0; x < width; x += MERGED) {
      for (let i = 0; i < MERGED * MERGED; i++) {
        order[row++] = (y + Math.floor(i / MERGED)) * width + x + (i % MERGED);
      }
    }
  }
  return order;
}

/** Time, height and width of rows in that order. */
export function positionsOf({ width, height }: Grid, order?: Int32Array): Int32Array {
  const positions = new Int32Array(width * height * 3);
  for (let row = 0; row < width * height; row++) {
    const patch = order ? order[row]! : row;
    positions[3 * row + 1] = Math.floor(patch / width);
    positions[3 * row + 2] = patch % width;
  }
  return positions;
}

/**
 * Squares of `side` rows, each as one row: row by row, or channel by channel with each square line by line, as in a
 * convolution kernel.
 */
export function squares(
  rows: Float32Array,
  grid: Grid,
  { side, byChannel }: { side: number; byChannel: boolean },
): Float32Array {
  const dim = rows.length / (grid.width * grid.height);
  const out = new Float32Array(rows.length);
  const across = grid.width / side;
  const wide = dim * side * side;
  for (let patch = 0; patch < grid.width * grid.height; patch++) {
    const [x, y] = [patch % grid.width, Math.floor(patch / grid.width)];
    const cell = Math.floor(y / side) * across + Math.floor(x / side);
    const place = (y % side) * side + (x % side);
    const [start, step] = byChannel ? [place, side * side] : [place * dim, 1];
    for (let i = 0; i < dim; i++) out[cell * wide + start + i * step] = rows[patch * dim + i]!;
  }
  return out;
}

/** The entries of a line that contribute to a value, with their weights. */
type Taps = readonly (readonly [index: number, weight: number])[];

/** Linear interpolation that maps the first and last entries to the first and last results. */
export const alignedTaps = (i: number, from: number, to: number): Taps => {
  const at = to > 1 ? (i * (from - 1)) / (to - 1) : 0;
  const below = Math.min(Math.floor(at), from - 1);
  return [
    [below, 1 - (at - below)],
    [Math.min(below + 1, from - 1), at - below],
  ];
};

/** Parameter of the cubic curve below. */
const A = -0.75;

/** Cubic interpolation of four entries, clamped at the ends. (`ggml_interpolate`, bicubic) */
export const cubicTaps = (i: number, from: number, to: number): Taps => {
  const at = ((i + 0.5) * from) / to - 0.5;
  const below = Math.floor(at);
  const near = (d: number): number => ((A + 2) * d - (A + 3)) * d * d + 1;
  const far = (d: number): number => ((A * d - 5 * A) * d + 8 * A) * d - 4 * A;
  const t = at - below;
  const weights = [far(t + 1), near(t), near(1 - t), far(2 - t)];
  return weights.map((weight, j) => [Math.max(0, Math.min(from - 1, below - 1 + j)), weight]);
};

/** A table of learned positions, (side², dim), resized to a grid, in the order of its rows. */
export function stretchTable(
  table: Float32Array,
  grid: Grid,
  { side, order, tapsOf }: { side: number; order: Int32Array; tapsOf: (i: number, from: number, to: number) => Taps },
): Float32Array {
  const dim = table.length / (side * side);
  const same = grid.width === side && grid.height === side;
  const taps = (count: number): Taps[] =>
    Array.from({ length: count }, (_, i) => (same ? [[i, 1] as const] : tapsOf(i, side, count)));
  const [across, down] = [taps(grid.width), taps(grid.height)];
  const out = new Float32Array(order.length * dim);
  const sums = new Float64Array(dim);
  for (const [row, patch] of order.entries()) {
    sums.fill(0);
    for (const [y, tall] of down[Math.floor(patch / grid.width)]!) {
      for (const [x, wide] of across[patch % grid.width]!) {
        const at = (y * side + x) * dim;
        for (let i = 0; i < dim; i++) sums[i]! += tall * wide * table[at + i]!;
      }
    }
    out.set(sums, row * dim);
  }
  return out;
}
