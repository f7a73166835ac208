/**
 * Rotary position embedding: the angle of every position and pair, with linear scaling, YaRN and frequency factors.
 * Backends share these tables. Ported from `ggml_rope_cache_init`, `rope_yarn` (ggml-cpu/ops.cpp) and
 * `ggml_rope_yarn_corr_dims` (ggml.c), with float32 rounding in the same steps, because a long context multiplies every
 * rounding error by the position.
 */
import type { RopeScaling } from "./step.ts";

/** Rotations by position and pair, magnitude included. */
export interface RopeTable {
  readonly cos: Float32Array; // (positions, rotaryDim / 2)
  readonly sin: Float32Array; // (positions, rotaryDim / 2)
}

const f32 = Math.fround;

/** A table for a whole context that is filled on demand: a million positions take seconds. */
export interface GrowingRopeTable extends RopeTable {
  /** Computes the missing positions below `end`. */
  reach(end: number): void;
}

/** Number of positions computed together: less than a millisecond's work. */
const REACH_STEP = 256;

/** Rotations of positions 0 … ctxLen − 1, for a session with a context of `ctxLen` tokens. */
export function ropeTable(rope: RopeScaling, ctxLen: number): GrowingRopeTable {
  const { delay = 0, back = false } = rope;
  const pairs = rope.rotaryDim / 2;
  const cos = new Float32Array(ctxLen * pairs);
  const sin = new Float32Array(ctxLen * pairs);
  const angles = makeAngles(rope, ctxLen);
  const theta = new Float32Array(pairs);
  const magnitude = ropeMagnitude(rope);
  let known = 0;
  const reach = (end: number): void => {
    if (end <= known) return;
    const until = Math.min(ctxLen, Math.ceil(end / REACH_STEP) * REACH_STEP);
    for (; known < until; known++) {
      angles(known - delay, theta);
      for (let i = 0; i < pairs; i++) {
        cos[known * pairs + i] = f32(Math.cos(theta[i]!)) * magnitude;
        sin[known * pairs + i] = f32(Math.sin(theta[i]!)) * (back ? -magnitude : magnitude);
      }
    }
  };
  return { cos, sin, reach };
}

/**
 * The rotation, of magnitude 1, that moves a rotated key down by `discard` positions: (1, rotaryDim / 2). Angles are
 * linear in the position, so it is the same for every key. (`build_rope_shift`, llama-kv-cache.cpp)
 */
export function ropeShift(rope: RopeScaling, options: { discard: number; ctxLen: number }): RopeTable {
  const theta = new Float32Array(rope.rotaryDim / 2);
  makeAngles(rope, options.ctxLen)(-options.discard, theta);
  return { cos: theta.map(Math.cos), sin: theta.map(Math.sin) };
}

/** Factor of every rotated vector: `attnFactor`, times YaRN's own correction if YaRN is on. */
export function ropeMagnitude(rope: RopeScaling): number {
  if (rope.extFactor === 0) return f32(rope.attnFactor);
  return f32(rope.attnFactor * (1 + 0.1 * Math.log(1 / rope.freqScale)));
}

/**
 * Rotates one head in place by one row of a table.
 * @param x holds (headDim) values from `at`; those beyond rotaryDim stay unchanged
 * @param row index in the table: a position, or 0 for a shift
 */
export function rotateHead(x: Float32Array, at: number, table: RopeTable, row: number, rope: RopeScaling): void {
  const pairs = rope.rotaryDim / 2;
  const step = rope.style === "norm" ? 2 : 1;
  const apart = rope.style === "norm" ? 1 : pairs;
  for (let i = 0; i < pairs; i++) {
    const cos = table.cos[row * pairs + i]!;
    const sin = table.sin[row * pairs + i]!;
    const a = at + i * step;
    const x0 = x[a]!;
    const x1 = x[a + apart]!;
    x[a] = x0 * cos - x1 * sin;
    x[a + apart] = x0 * sin + x1 * cos;
  }
}

/**
 * As `rotateHead`, by a row's three positions. The first rotates the pairs outside all sections.
 * @param positions time, height and width
 */
export function rotateHeadBySections(
  x: Float32Array,
  at: number,
  table: RopeTable,
  positions: ArrayLike<number>,
  rope: RopeScaling,
): void {
  const pairs = rope.rotaryDim / 2;
  const step = rope.style === "norm" ? 2 : 1;
  const apart = rope.style === "norm" ? 1 : pairs;
  for (let i = 0; i < pairs; i++) {
    const row = positions[sectionOf(i, rope.sections)]!;
    const cos = table.cos[row * pairs + i]!;
    const sin = table.sin[row * pairs + i]!;
    const a = at + i * step;
    const [x0, x1] = [x[a]!, x[a + apart]!];
    x[a] = x0 * cos - x1 * sin;
    x[a + apart] = x0 * sin + x1 * cos;
  }
}

/** The position that rotates a pair: time (0), height (1) or width (2). (`ggml_mrope_cache_init`) */
export function sectionOf(pair: number, sections: RopeScaling["sections"]): 0 | 1 | 2 {
  if (!sections) return 0;
  const { pairs, interleaved } = sections;
  const [time, height, width] = pairs;
  const place = pair % (time + height + width);
  if (!interleaved) return place < time ? 0 : place < time + height ? 1 : 2;
  if (place % 3 === 1 && place < 3 * height) return 1;
  return place % 3 === 2 && place < 3 * width ? 2 : 0;
}

/** Returns a function that writes the angle of each pair at a position, (rotaryDim / 2) radians. */
function makeAngles(rope: RopeScaling, ctxLen: number): (position: number, theta: Float32Array) => void {
  const long = ctxLen > rope.ctxLenOrig ? rope.freqFactorsLong : undefined;
  const factors = long ?? rope.freqFactors;
  const ratio = f32(Math.pow(f32(rope.base), f32(-2 / rope.rotaryDim)));
  const freqScale = f32(rope.freqScale);
  const mix = rope.extFactor === 0 ? undefined : yarnMix(rope);
  return (position, theta) => {
    let power = position;
    for (let i = 0; i < theta.length; i++) {
      const extrapolated = factors ? f32(power / factors[i]!) : power;
      const interpolated = f32(freqScale * extrapolated);
      theta[i] = mix ? f32(interpolated * f32(1 - mix[i]!)) + f32(extrapolated * mix[i]!) : interpolated;
      power = f32(power * ratio);
    }
  };
}

/**
 * Share of the unscaled angle in each pair, (rotaryDim / 2): 1 for high frequencies, 0 for low ones, a ramp between.
 */
function yarnMix(rope: RopeScaling): Float32Array {
  const { rotaryDim, ctxLenOrig, base, extFactor, exactEnds = false } = rope;
  /** The dimension that makes `turns` full rotations within the trained context. */
  const dimOf = (turns: number): number =>
    (rotaryDim * Math.log(ctxLenOrig / (turns * 2 * Math.PI))) / (2 * Math.log(base));
  const [first, last] = [dimOf(rope.betaFast), dimOf(rope.betaSlow)];
  const low = Math.max(0, exactEnds ? first : Math.floor(first));
  const high = Math.min(rotaryDim - 1, exactEnds ? last : Math.ceil(last));
  return Float32Array.from({ length: rotaryDim / 2 }, (_, i) => {
    const ramp = (i - low) / Math.max(0.001, high - low);
    return (1 - Math.min(1, Math.max(0, ramp))) * extFactor;
  });
}
