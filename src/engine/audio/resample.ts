/** Resamples with a windowed sinc filter, part by part. */

/** Zeros of the sinc on each side, and the shape of its window (Kaiser): 90 dB at the stop band. */
const ZEROS = 16;
const BETA = 9;
/** Pass band, relative to half the lower rate. */
const PASS = 0.94;

export interface Resampler {
  /** Adds samples; returns the samples of the result that are complete. */
  add(samples: Float32Array): Float32Array;
  /** The remaining samples. */
  end(): Float32Array;
}

/** Rates are whole numbers of samples per second. The result has `ceil(length · to / from)` samples. */
export function makeResampler(from: number, to: number): Resampler {
  if (from === to) return { add: (samples) => samples, end: () => new Float32Array(0) };
  const { up, down, half, taps } = filterOf(from, to);
  const width = 2 * half;
  let held = new Float32Array(half - 1); // silence before the beginning
  let [heldFrom, next, given] = [1 - half, 0, 0];

  /** Output `n` lies between the inputs `floor(n · down / up)` and the one after it. */
  const take = (isLast: boolean): Float32Array => {
    const ready = heldFrom + held.length - 1 - half; // the last input whose neighbours are all known
    const end = isLast ? Math.ceil((given * up) / down) : Math.ceil(((ready + 1) * up) / down);
    const out = new Float32Array(Math.max(0, end - next));
    for (let i = 0; i < out.length; i++, next++) {
      const position = next * down;
      const first = Math.floor(position / up) - half + 1 - heldFrom;
      const row = (position % up) * width;
      let sum = 0;
      for (let k = 0; k < width; k++) sum += taps[row + k]! * held[first + k]!;
      out[i] = sum;
    }
    const keepFrom = Math.floor((next * down) / up) - half + 1;
    held = held.slice(Math.max(0, keepFrom - heldFrom));
    heldFrom = Math.max(heldFrom, keepFrom);
    return out;
  };
  const append = (samples: Float32Array): void => {
    const both = new Float32Array(held.length + samples.length);
    both.set(held);
    both.set(samples, held.length);
    held = both;
  };
  return {
    add(samples) {
      append(samples);
      given += samples.length;
      return take(false);
    },
    end() {
      append(new Float32Array(half + 1)); // silence after the end
      return take(true);
    },
  };
}

interface Filter {
  /** The ratio of the rates in lowest terms: `to / from`. */
  readonly up: number;
  readonly down: number;
  /** Inputs on each side of an output. */
  readonly half: number;
  /** (up, 2 · half): for each position of an output between two inputs. */
  readonly taps: Float32Array;
}

function filterOf(from: number, to: number): Filter {
  const common = divisorOf(from, to);
  const [up, down] = [to / common, from / common];
  const cutoff = PASS * Math.min(1, to / from); // relative to half the input's rate
  const half = Math.ceil(ZEROS / cutoff);
  const taps = new Float32Array(up * 2 * half);
  for (let phase = 0; phase < up; phase++) {
    const row = taps.subarray(phase * 2 * half, (phase + 1) * 2 * half);
    let sum = 0;
    for (let k = 0; k < row.length; k++) {
      const distance = k - half + 1 - phase / up;
      sum += row[k] = sinc(distance * cutoff) * kaiser(distance / half);
    }
    for (let k = 0; k < row.length; k++) row[k]! /= sum;
  }
  return { up, down, half, taps };
}

const divisorOf = (a: number, b: number): number => (b === 0 ? a : divisorOf(b, a % b));
const sinc = (x: number): number => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x));
const kaiser = (x: number): number => (Math.abs(x) >= 1 ? 0 : bessel(BETA * Math.sqrt(1 - x * x)) / bessel(BETA));

/** The modified Bessel function of order 0, by its series. */
function bessel(x: number): number {
  let [sum, term] = [1, 1];
  for (let k = 1; term > 1e-12 * sum; k++) sum += term *= (x / (2 * k)) ** 2;
  return sum;
}
