/**
 * Attention scores that depend on the distance of two rows, as an additional part of queries and keys. Over a window,
 * the scores of a query by distance are a sum of waves, and the wave of a distance is a product of rotated waves of
 * both positions.
 */
import type { RopeScaling } from "../program/step.ts";

/** Number of rows that a row attends to, itself the last. */
export const WINDOW = 12;
/** Waves with 0 to 6 periods in a window, and an unused one: pairs of values of each head. */
const PAIRS = 8;
/** Values per head. */
export const POSITION_DIM = 2 * PAIRS;

/** The angle of a wave per row; the zeroth wave rotates by whole circles. */
const turnOf = (wave: number): number => (2 * Math.PI * (wave === 0 ? WINDOW : wave)) / WINDOW;

/** Rotates a pair by its wave's angle for each row; positions count modulo the window's length. */
export const positionRope: RopeScaling = {
  base: 1,
  rotaryDim: POSITION_DIM,
  style: "neox",
  freqScale: 1,
  extFactor: 0,
  attnFactor: 1,
  betaFast: 32,
  betaSlow: 1,
  ctxLenOrig: 1,
  freqFactors: Float32Array.from({ length: PAIRS }, (_, wave) => 1 / turnOf(wave)),
};

/** The additional part of all keys, before RoPE: (`POSITION_DIM`) */
export const positionKey = (): Float32Array =>
  Float32Array.from({ length: POSITION_DIM }, (_, i) => (i < PAIRS ? 1 : 0));

/**
 * Matrices from a head's query to its additional part, before RoPE: (heads, `POSITION_DIM`, headDim).
 * @param distances (WINDOW, heads · headDim): a query times one of these vectors is its score for the row at that
 * distance before it
 */
export function positionQuery(distances: Float32Array, nHeads: number): Float32Array {
  const dim = distances.length / WINDOW;
  const headDim = dim / nHeads;
  const out = new Float32Array(nHeads * POSITION_DIM * headDim);
  for (let wave = 0; wave <= WINDOW / 2; wave++) {
    const share = (wave === 0 || wave === WINDOW / 2 ? 1 : 2) / WINDOW;
    for (let distance = 0; distance < WINDOW; distance++) {
      const angle = ((2 * Math.PI * wave) / WINDOW) * distance;
      const [cos, sin] = [share * Math.cos(angle), -share * Math.sin(angle)];
      for (let i = 0; i < dim; i++) {
        const value = distances[distance * dim + i]!;
        const at = Math.floor(i / headDim) * POSITION_DIM * headDim + (i % headDim);
        out[at + wave * headDim]! += cos * value;
        out[at + (wave + PAIRS) * headDim]! += sin * value;
      }
    }
  }
  return out;
}
