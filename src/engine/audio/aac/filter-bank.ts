/**
 * From spectra to samples: the inverse modified cosine transform, windows, and the sum of frames that overlap. (ISO/IEC
 * 14496-3, 4.6.11)
 */
import { makeFft } from "../fft.ts";
import { FRAME, SEQUENCE, SHORT_FRAME, type Layout } from "./layout.ts";

/** Silence before and after short windows in a frame, where it meets the long ones. */
const MARGIN = (FRAME - SHORT_FRAME) / 2;
/** Spectra are scaled for samples of 16 bits. */
const FULL_SCALE = 32_768;

/** One channel's samples of a frame, and what it needs of the frame before. */
export interface FilterBank {
  /** 1,024 samples between -1 and 1 if the encoder did not clip. */
  add(layout: Layout, spectrum: Float64Array): Float32Array;
}

export function makeFilterBank(): FilterBank {
  const [long, short] = [makeInverse(FRAME), makeInverse(SHORT_FRAME)];
  const overlap = new Float64Array(FRAME);
  const block = new Float64Array(2 * FRAME);
  let shapeBefore = 0;

  const addShort = (spectrum: Float64Array, rising: Float64Array, own: Float64Array): void => {
    block.fill(0);
    for (let window = 0; window < 8; window++) {
      const samples = short(spectrum.subarray(window * SHORT_FRAME, (window + 1) * SHORT_FRAME));
      const start = MARGIN + window * SHORT_FRAME;
      const up = window === 0 ? rising : own;
      for (let i = 0; i < SHORT_FRAME; i++) {
        block[start + i]! += samples[i]! * up[i]!;
        block[start + SHORT_FRAME + i]! += samples[SHORT_FRAME + i]! * own[SHORT_FRAME - 1 - i]!;
      }
    }
  };
  const addLong = (spectrum: Float64Array, rising: Float64Array, falling: Float64Array): void => {
    const samples = long(spectrum);
    for (let i = 0; i < FRAME; i++) {
      block[i] = samples[i]! * rising[i]!;
      block[FRAME + i] = samples[FRAME + i]! * falling[FRAME - 1 - i]!;
    }
  };
  return {
    add({ sequence, shape }, spectrum) {
      const [before, own] = [WINDOWS[shapeBefore]!, WINDOWS[shape]!];
      if (sequence === SEQUENCE.short) addShort(spectrum, before.short, own.short);
      else
        addLong(
          spectrum,
          sequence === SEQUENCE.stop ? before.late : before.long,
          sequence === SEQUENCE.start ? own.late : own.long,
        );
      shapeBefore = shape;
      const out = new Float32Array(FRAME);
      for (let i = 0; i < FRAME; i++) {
        out[i] = (overlap[i]! + block[i]!) / FULL_SCALE;
        overlap[i] = block[FRAME + i]!;
      }
      return out;
    },
  };
}

/** The rising halves of windows. */
interface Rising {
  readonly long: Float64Array;
  readonly short: Float64Array;
  /** A short one in the middle of a long one. */
  readonly late: Float64Array;
}

const lateOf = (short: Float64Array): Float64Array =>
  Float64Array.from({ length: FRAME }, (_, i) => (i < MARGIN ? 0 : (short[i - MARGIN] ?? 1)));

const sine = (size: number): Float64Array =>
  Float64Array.from({ length: size }, (_, i) => Math.sin((Math.PI * (i + 0.5)) / (2 * size)));

/** Kaiser-Bessel derived. */
function bessel(size: number, alpha: number): Float64Array {
  const terms = Array.from({ length: size + 1 }, (_, i) =>
    besselI0(Math.PI * alpha * Math.sqrt(1 - ((2 * i) / size - 1) ** 2)),
  );
  const total = terms.reduce((sum, term) => sum + term);
  let sum = 0;
  return Float64Array.from({ length: size }, (_, i) => Math.sqrt((sum += terms[i]!) / total));
}

/** The modified Bessel function of the first kind and order 0, by its series. */
function besselI0(x: number): number {
  let [sum, term] = [1, 1];
  for (let k = 1; term > sum * 1e-17; k++) sum += term *= (x / 2 / k) ** 2;
  return sum;
}

const withLate = (long: Float64Array, short: Float64Array): Rising => ({ long, short, late: lateOf(short) });

/** By their shape. */
const WINDOWS: readonly Rising[] = [
  withLate(sine(FRAME), sine(SHORT_FRAME)),
  withLate(bessel(FRAME, 4), bessel(SHORT_FRAME, 6)),
];

/**
 * The inverse modified cosine transform of `size` coefficients to `2 * size` samples, divided by `size`. The result is
 * valid up to the next call. A cosine transform of type IV, by a complex Fourier transform of half its size, whose
 * symmetric continuations are the samples.
 */
function makeInverse(size: number): (spectrum: Float64Array) => Float64Array {
  const half = size / 2;
  const { transform } = makeFft(half);
  const [re, im] = [new Float64Array(half), new Float64Array(half)];
  const turns = Array.from({ length: half }, (_, k) => (-Math.PI * (k + 1 / 8)) / size);
  const [cos, sin] = [Float64Array.from(turns, Math.cos), Float64Array.from(turns, Math.sin)];
  const cosine = new Float64Array(size);
  const out = new Float64Array(2 * size);
  return (spectrum) => {
    for (let k = 0; k < half; k++) {
      const a = spectrum[2 * k]!;
      const b = spectrum[size - 1 - 2 * k]!;
      re[k] = a * cos[k]! - b * sin[k]!;
      im[k] = a * sin[k]! + b * cos[k]!;
    }
    const turned = transform(re, im);
    for (let k = 0; k < half; k++) {
      cosine[2 * k] = (turned.re[k]! * cos[k]! - turned.im[k]! * sin[k]!) / size;
      cosine[size - 1 - 2 * k] = -(turned.re[k]! * sin[k]! + turned.im[k]! * cos[k]!) / size;
    }
    for (let i = 0; i < half; i++) {
      out[i] = cosine[half + i]!;
      out[half + i] = -cosine[size - 1 - i]!;
      out[size + i] = -cosine[half - 1 - i]!;
      out[size + half + i] = -cosine[i]!;
    }
    return out;
  };
}
