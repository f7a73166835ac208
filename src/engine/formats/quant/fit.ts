/**
 * The searches for scales and minimums in K quantizers: `make_qkx2_quants`, `make_qx_quants` and `make_q3_quants` in
 * ggml-quants.c. ggml's choice among nearly equal scales depends on the last bit, so every operation is rounded to
 * float32 in ggml's order; the JIT turns `round(a * b)` into one float32 instruction.
 */
import { floatToHalf, halfToFloat } from "../half.ts";
import { extreme } from "./blocks.ts";

const round = Math.fround;

/** 1.5 · 2^23: a float32 sum with it has no bits left for a fraction. */
const NO_FRACTION = 12_582_912;

/** A group below this counts as zeros in ggml (GROUP_MAX_EPS). */
export const ZERO = 1e-15;

/** Distance between tried scales, in levels. */
const STEP = round(0.1);

/** The nearest integer to a float32 below 2^22 in size, ties to even. */
function nearest(value: number): number {
  return round(value + NO_FRACTION) - NO_FRACTION;
}

/** The integer in `low … high` that is nearest to a float32. */
export function nearestWithin(value: number, low: number, high: number): number {
  const level = nearest(value);
  return level > high ? high : level >= low ? level : low; // NaN becomes `low`
}

/** The scales to try in a search for scale and minimum, and the weighting of errors. */
export interface MinSearch {
  /** Weights per group. */
  readonly len: number;
  /** Highest level; the lowest is 0. */
  readonly max: number;
  /**
   * The first scale spreads the group over `max + from` levels; each of `steps` further scales over 0.1 levels more.
   */
  readonly from: number;
  readonly steps: number;
  /** Errors are weighted by absolute value instead of square. */
  readonly absolute: boolean;
  /** Range of quantized scales and minimums: 0 … this. */
  readonly scaleMax: number;
}

/** One block in progress: 256 weights as levels, and the scales of its groups. Made once per call and reused. */
interface MinBlock {
  /** (256) */
  readonly levels: Uint8Array;
  /** (groups) Quantized. */
  readonly scales: Uint8Array;
  readonly mins: Uint8Array;
  /** f16 patterns of the units of `scales` and of `mins`. */
  d: number;
  dmin: number;
  /** (len) The weight of each error in the group. */
  readonly importance: Float32Array;
  /** (groups) Before quantization. */
  readonly exactScales: Float32Array;
  readonly exactMins: Float32Array;
  /** (len) Levels for the scale being tried. */
  readonly trial: Float32Array;
}

export function makeMinBlock({ len }: MinSearch): MinBlock {
  const groups = 256 / len;
  return {
    levels: new Uint8Array(256),
    scales: new Uint8Array(groups),
    mins: new Uint8Array(groups),
    d: 0,
    dmin: 0,
    importance: new Float32Array(len),
    exactScales: new Float32Array(groups),
    exactMins: new Float32Array(groups),
    trial: new Float32Array(len),
  };
}

/**
 * Finds levels, scales and minimums of the 256 weights at `at`, so that w ≈ d · scale · level − dmin · min.
 * `quantize_row_q2_K_ref`, `…_q4_K_ref` and `…_q5_K_ref` up to the packing.
 */
export function fitMinBlock(x: Float32Array, at: number, search: MinSearch, block: MinBlock): void {
  const { len, max, scaleMax, absolute } = search;
  const { levels, scales, mins, exactScales, exactMins } = block;
  let maxScale = 0;
  let maxMin = 0;
  for (let group = 0; group < scales.length; group++) {
    weigh(x, at + group * len, absolute, block.importance);
    fitMinGroup(x, at, group, search, block);
    if (exactScales[group]! > maxScale) maxScale = exactScales[group]!;
    if (exactMins[group]! > maxMin) maxMin = exactMins[group]!;
  }
  const perScale = maxScale > 0 ? round(scaleMax / maxScale) : 0;
  const perMin = maxMin > 0 ? round(scaleMax / maxMin) : 0;
  block.d = floatToHalf(round(maxScale / scaleMax));
  block.dmin = floatToHalf(round(maxMin / scaleMax));
  const d = halfToFloat(block.d);
  const dmin = halfToFloat(block.dmin);
  for (let group = 0; group < scales.length; group++) {
    scales[group] = nearestWithin(round(perScale * exactScales[group]!), 0, scaleMax);
    mins[group] = nearestWithin(round(perMin * exactMins[group]!), 0, scaleMax);
    const scale = d * scales[group]!;
    if (scale === 0) continue; // the levels have no effect then; ggml keeps the search's
    const min = dmin * mins[group]!;
    for (let j = group * len; j < (group + 1) * len; j++) {
      levels[j] = nearestWithin(round(round(x[at + j]! + min) / scale), 0, max);
    }
  }
}

/** The weight of an error: the value's magnitude, plus the group's root mean square if errors are squared. */
function weigh(x: Float32Array, at: number, absolute: boolean, importance: Float32Array): void {
  let base = 0;
  if (!absolute) {
    let squares = 0;
    for (let j = 0; j < importance.length; j++) squares = round(squares + round(x[at + j]! * x[at + j]!));
    base = round(Math.sqrt(round(squares / importance.length)));
  }
  for (let j = 0; j < importance.length; j++) importance[j] = base + Math.abs(x[at + j]!);
}

/** One group: tries `steps + 1` spreads, solves least squares for each, and keeps the one with the smallest error. */
function fitMinGroup(x: Float32Array, blockAt: number, group: number, search: MinSearch, block: MinBlock): void {
  const { len, max, from, steps } = search;
  const { importance, trial, levels } = block;
  const at = blockAt + group * len;
  const levelsAt = group * len;
  let min = x[at]!;
  let top = min;
  let sumW = importance[0]!;
  let sumX = round(sumW * x[at]!);
  for (let j = 1; j < len; j++) {
    const value = x[at + j]!;
    if (value < min) min = value;
    if (value > top) top = value;
    sumW = round(sumW + importance[j]!);
    sumX = round(sumX + round(importance[j]! * value));
  }
  if (min > 0) min = 0;
  if (top === min) {
    levels.fill(0, levelsAt, levelsAt + len);
    block.exactScales[group] = 0;
    block.exactMins[group] = -min;
    return;
  }
  let spread = round(max / round(top - min));
  let scale = round(1 / spread);
  for (let j = 0; j < len; j++) trial[j] = nearestWithin(round(spread * round(x[at + j]! - min)), 0, max);
  let best = errorOf(x, at, scale, min, Infinity, search, block);
  for (let j = 0; j < len; j++) levels[levelsAt + j] = trial[j]!;
  for (let step = 0; step <= steps; step++) {
    // Derived from the best minimum so far
    spread = round(round(round(from + round(STEP * step)) + max) / round(top - min));
    let sumL = 0;
    let sumL2 = 0;
    let sumXL = 0;
    for (let j = 0; j < len; j++) {
      const value = x[at + j]!;
      const level = nearestWithin(round(spread * round(value - min)), 0, max);
      trial[j] = level;
      const weighted = round(importance[j]! * level);
      sumL = round(sumL + weighted);
      sumL2 = round(sumL2 + round(weighted * level));
      sumXL = round(sumXL + round(weighted * value));
    }
    const determinant = round(round(sumW * sumL2) - round(sumL * sumL));
    if (!(determinant > 0)) continue;
    let newScale = round(round(round(sumW * sumXL) - round(sumX * sumL)) / determinant);
    let newMin = round(round(round(sumL2 * sumX) - round(sumL * sumXL)) / determinant);
    if (newMin > 0) {
      newMin = 0;
      newScale = round(sumXL / sumL2);
    }
    const error = errorOf(x, at, newScale, newMin, best, search, block);
    if (!(error < best)) continue;
    for (let j = 0; j < len; j++) levels[levelsAt + j] = trial[j]!;
    best = error;
    scale = newScale;
    min = newMin;
  }
  block.exactScales[group] = scale;
  block.exactMins[group] = -min;
}

/** The weighted error of the levels in `trial`. The sum never decreases, so it stops at `limit`. */
function errorOf(
  x: Float32Array,
  at: number,
  scale: number,
  min: number,
  limit: number,
  { len, absolute }: MinSearch,
  { importance, trial }: MinBlock,
): number {
  let error = 0;
  for (let from = 0; from < len && error < limit; from += 8) {
    for (let j = from; j < from + 8; j++) {
      const off = round(round(round(scale * trial[j]!) + min) - x[at + j]!);
      const size = absolute ? Math.abs(off) : round(off * off);
      error = round(error + round(importance[j]! * size));
    }
  }
  return error;
}

/**
 * The scale of a group of 16 with levels −32 … 31, as in Q6_K: tries 19 spreads, with errors weighted by the square of
 * the value. Writes levels + 32. `make_qx_quants`, rmse_type 1.
 */
export function fitScale(x: Float32Array, at: number, levels: Uint8Array, levelsAt: number): number {
  const value = extreme(x, at, 16);
  if (Math.abs(value) < ZERO) {
    levels.fill(0, levelsAt, levelsAt + 16);
    return 0;
  }
  let bestSpread = 0;
  let scale = 0;
  let best = 0;
  for (let step = 0; step < 20; step++) {
    const offset = step === 0 ? 0 : step - 10; // 0 first, then −9 … 9
    if (step > 0 && offset === 0) continue;
    const spread = round(-round(32 + round(STEP * offset)) / value);
    let sumXL = 0;
    let sumL2 = 0;
    for (let j = at; j < at + 16; j++) {
      const level = nearestWithin(round(spread * x[j]!), -32, 31);
      const weight = round(x[j]! * x[j]!);
      sumXL = round(sumXL + round(round(weight * x[j]!) * level));
      sumL2 = round(sumL2 + round(round(weight * level) * level));
    }
    const better = step === 0 || (sumL2 > 0 && round(sumXL * sumXL) > round(best * sumL2));
    if (!better) continue;
    bestSpread = spread;
    scale = sumL2 > 0 ? round(sumXL / sumL2) : 0;
    best = round(scale * sumXL);
  }
  for (let j = 0; j < 16; j++) {
    levels[levelsAt + j] = 32 + nearestWithin(round(bestSpread * x[at + j]!), -32, 31);
  }
  return scale;
}

/**
 * The scale of a group of 16 with levels −4 … 3, as in Q3_K: moves levels one at a time while that helps, in at most
 * five rounds. Writes levels + 4. `make_q3_quants`.
 */
export function fitScaleBySteps(x: Float32Array, at: number, levels: Uint8Array, levelsAt: number): number {
  const value = extreme(x, at, 16);
  if (Math.abs(value) < ZERO) {
    levels.fill(0, levelsAt, levelsAt + 16);
    return 0;
  }
  const spread = round(-4 / value);
  let sumXL = 0;
  let sumL2 = 0;
  for (let j = 0; j < 16; j++) {
    const level = nearestWithin(round(spread * x[at + j]!), -4, 3);
    levels[levelsAt + j] = level + 4;
    const weight = round(x[at + j]! * x[at + j]!);
    sumXL = round(sumXL + round(round(weight * x[at + j]!) * level));
    sumL2 = round(sumL2 + round(round(weight * level) * level));
  }
  let moved = true;
  for (let pass = 0; pass < 5 && moved; pass++) {
    moved = false;
    for (let j = 0; j < 16; j++) {
      const level = levels[levelsAt + j]! - 4;
      const weight = round(x[at + j]! * x[at + j]!);
      const weighted = round(weight * x[at + j]!);
      let newXL = round(sumXL - round(weighted * level));
      if (!(newXL > 0)) continue;
      let newL2 = round(sumL2 - round(round(weight * level) * level));
      const target = nearestWithin(round(round(x[at + j]! * newL2) / newXL), -4, 3);
      if (target === level) continue;
      newXL = round(newXL + round(weighted * target));
      newL2 = round(newL2 + round(round(weight * target) * target));
      const better = round(round(newXL * newXL) * sumL2) > round(round(sumXL * sumXL) * newL2);
      if (!(newL2 > 0 && better)) continue;
      levels[levelsAt + j] = target + 4;
      sumXL = newXL;
      sumL2 = newL2;
      moved = true;
    }
  }
  return sumL2 > 0 ? round(sumXL / sumL2) : 0;
}
