/**
 * Resizes bytes like Pillow (Resample.c): the horizontal pass first, rounded to bytes, then the vertical one; weights
 * are 22-bit fixed-point numbers.
 */
import type { RgbImage, Size } from "./image.ts";
import type { Steps } from "./steps.ts";

interface Filter {
  /** Radius of the filter, in pixels of the smaller image. */
  readonly support: number;
  weight(x: number): number;
}

/** Parameter of the bicubic filter. */
const A = -0.5;
const sinc = (x: number): number => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x));

const filters = {
  bilinear: { support: 1, weight: (x) => Math.max(0, 1 - Math.abs(x)) },
  bicubic: {
    support: 2,
    weight(x) {
      const d = Math.abs(x);
      if (d < 1) return ((A + 2) * d - (A + 3)) * d * d + 1;
      return d < 2 ? (((d - 5) * d + 8) * d - 4) * A : 0;
    },
  },
  lanczos: { support: 3, weight: (x) => (Math.abs(x) < 3 ? sinc(x) * sinc(x / 3) : 0) },
} as const satisfies Record<string, Filter>;

export type FilterName = keyof typeof filters;

/** Fraction bits of a weight. */
const BITS = 22;

/** The source pixels of one result pixel, with their weights. */
interface Taps {
  readonly first: number;
  readonly weights: Int32Array;
}

/** The source pixels of each of `to` pixels, for a line of `from` pixels. */
function tapsOf(from: number, to: number, { support, weight }: Filter): Taps[] {
  const scale = from / to;
  const stretch = Math.max(scale, 1);
  const reach = support * stretch;
  return Array.from({ length: to }, (_, i) => {
    const middle = (i + 0.5) * scale;
    const first = Math.max(0, Math.trunc(middle - reach + 0.5));
    const end = Math.min(from, Math.trunc(middle + reach + 0.5));
    const exact = Array.from({ length: end - first }, (_, j) => weight((first + j - middle + 0.5) / stretch));
    const sum = exact.reduce((total, each) => total + each, 0);
    const fixed = exact.map((each) => {
      const share = (sum === 0 ? each : each / sum) * 2 ** BITS;
      return Math.trunc(share < 0 ? share - 0.5 : share + 0.5);
    });
    return { first, weights: Int32Array.from(fixed) };
  });
}

/** One pass over `lines` lines, which are `lineStep` bytes apart and have pixels `step` bytes apart. */
interface Pass {
  readonly taps: readonly Taps[];
  readonly lines: number;
  readonly from: { readonly step: number; readonly lineStep: number };
  readonly to: { readonly step: number; readonly lineStep: number };
}

function* runPass(data: Uint8Array, out: Uint8Array, pass: Pass): Steps<void> {
  for (let line = 0; line < pass.lines; line++) {
    runLine(data, out, pass, line);
    yield;
  }
}

/** Sums have 32 bits. */
function runLine(data: Uint8Array, out: Uint8Array, { taps, from, to }: Pass, line: number): void {
  const { step } = from;
  let target = line * to.lineStep;
  for (let i = 0; i < taps.length; i++, target += to.step) {
    const { first, weights } = taps[i]!;
    let at = line * from.lineStep + first * step;
    let red = 1 << (BITS - 1);
    let green = red;
    let blue = red;
    for (let j = 0; j < weights.length; j++, at += step) {
      const weight = weights[j]!;
      red = (red + Math.imul(weight, data[at]!)) | 0;
      green = (green + Math.imul(weight, data[at + 1]!)) | 0;
      blue = (blue + Math.imul(weight, data[at + 2]!)) | 0;
    }
    out[target] = clamp(red >> BITS);
    out[target + 1] = clamp(green >> BITS);
    out[target + 2] = clamp(blue >> BITS);
  }
}

const clamp = (value: number): number => Math.max(0, Math.min(255, value));

/** The resized image; a pass that would change nothing is skipped. */
export function* resize(image: RgbImage, { width, height }: Size, filter: FilterName): Steps<RgbImage> {
  let { data } = image;
  if (width !== image.width) {
    const out = new Uint8Array(width * image.height * 3);
    yield* runPass(data, out, {
      taps: tapsOf(image.width, width, filters[filter]),
      lines: image.height,
      from: { step: 3, lineStep: image.width * 3 },
      to: { step: 3, lineStep: width * 3 },
    });
    data = out;
  }
  if (height !== image.height) {
    const out = new Uint8Array(width * height * 3);
    yield* runPass(data, out, {
      taps: tapsOf(image.height, height, filters[filter]),
      lines: width,
      from: { step: width * 3, lineStep: 3 },
      to: { step: width * 3, lineStep: 3 },
    });
    data = out;
  }
  return { width, height, data };
}
