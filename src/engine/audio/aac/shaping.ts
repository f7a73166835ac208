/**
 * Temporal noise shaping: filters along the frequencies of a window, which give the noise of quantization the envelope
 * of the sound. (ISO/IEC 14496-3, 4.4.2.7 and 4.6.9)
 */
import type { Bits } from "./bits.ts";
import type { Layout } from "./layout.ts";

/** Order of a filter in profiles without prediction. */
const ORDER_MAX = 12;

interface Filter {
  /** Range of coefficients in the spectra of all windows. */
  readonly from: number;
  readonly to: number;
  readonly isDownward: boolean;
  /** Weights of the outputs before, the nearest first. */
  readonly weights: readonly number[];
}

/** In the order in which they are applied. */
export type Shaping = readonly Filter[];

/** @param reach bands that filters may reach. Throws if it is damaged. */
export function readShaping(bits: Bits, layout: Layout, reach: number): Shaping {
  const { windowSize, offsets, bandCount, groups } = layout;
  const isShort = groups.reduce((sum, count) => sum + count) > 1;
  const last = Math.min(reach, bandCount);
  const filters: Filter[] = [];
  for (let start = 0; start < offsets.at(-1)! * (isShort ? 8 : 1); start += windowSize) {
    const count = bits.read(isShort ? 1 : 2);
    const precision = count > 0 ? 3 + bits.read(1) : 0;
    let top = offsets.length - 1;
    for (let i = 0; i < count; i++) {
      const bottom = Math.max(0, top - bits.read(isShort ? 4 : 6));
      const order = bits.read(isShort ? 3 : 5);
      if (order > ORDER_MAX) throw new Error(`expected a filter of an order up to ${ORDER_MAX}, got ${order}`);
      const [from, to] = [start + offsets[Math.min(bottom, last)]!, start + offsets[Math.min(top, last)]!];
      top = bottom;
      if (order === 0) continue;
      const isDownward = bits.flag();
      filters.push({ from, to, isDownward, weights: readWeights(bits, order, precision) });
    }
  }
  return filters;
}

/** Reflection coefficients, as sines of quantized angles, to the weights of a filter. */
function readWeights(bits: Bits, order: number, precision: number): readonly number[] {
  const width = precision - bits.read(1); // the highest bit may be left out
  const half = 2 ** (precision - 1);
  let weights: number[] = [];
  for (let i = 0; i < order; i++) {
    const read = bits.read(width);
    const value = read >= 2 ** (width - 1) ? read - 2 ** width : read;
    const reflected = Math.sin((value * Math.PI) / 2 / (half + (value >= 0 ? -0.5 : 0.5)));
    const before = weights;
    weights = before.map((weight, k) => weight + reflected * before[before.length - 1 - k]!);
    weights.push(reflected);
  }
  return weights;
}

export function shape(spectrum: Float64Array, shaping: Shaping): void {
  for (const { from, to, isDownward, weights } of shaping) {
    const step = isDownward ? -1 : 1;
    const first = isDownward ? to - 1 : from;
    for (let n = 0; n < to - from; n++) {
      const at = first + n * step;
      let value = spectrum[at]!;
      for (let k = 1; k <= Math.min(n, weights.length); k++) value -= weights[k - 1]! * spectrum[at - k * step]!;
      spectrum[at] = value;
    }
  }
}
