/** Log-mel spectrograms, the input of models for speech. */
import { makeFft } from "./fft.ts";
import { SAMPLE_RATE } from "./sound.ts";

export interface MelOptions {
  /** Bands of the mel scale. */
  readonly bins: number;
  /** Samples that are transformed at once. */
  readonly fft: number;
  /** Samples from one frame to the next. */
  readonly hop: number;
  /** Samples under the Hann window, in the middle of a frame; default: `fft`. */
  readonly window?: number;
  /** Hertz of the lowest and of the highest band's edges. */
  readonly range: readonly [number, number];
  /** `slaney`: linear up to 1,000 Hz, then logarithmic. `htk`: logarithmic everywhere. Default: `slaney`. */
  readonly scale?: "slaney" | "htk";
  /** `slaney`: every band has the same area. `none`: the same height. */
  readonly norm: "slaney" | "none";
  /** Frames are centred on their time, with the sound mirrored at both ends; default: true. */
  readonly centre?: boolean;
  /** Exponent of the magnitudes; default: 2. */
  readonly power?: 1 | 2;
}

/** (bins, frames) */
export interface Mel {
  readonly bins: number;
  readonly frames: number;
  readonly values: Float32Array;
}

/** Whisper's input: 80 bins, or 128 in large models from version 3 on. */
export const whisperMel = (bins: number): MelOptions => ({
  bins,
  fft: 400,
  hop: 160,
  range: [0, 8000],
  norm: "slaney",
});

/**
 * A spectrogram as in Whisper: decimal logarithms, at most 8 below the maximum, as `(x + 4) / 4`.
 * @param samples at 16,000 per second; a whole number of hops, padded with zeros by the caller
 */
export function logMel(samples: Float32Array, options: MelOptions): Mel {
  const mel = melPowers(samples, options);
  const { values } = mel;
  let loudest = -Infinity;
  for (let i = 0; i < values.length; i++) {
    values[i] = Math.log10(Math.max(1e-10, values[i]!));
    loudest = Math.max(loudest, values[i]!);
  }
  for (let i = 0; i < values.length; i++) values[i] = (Math.max(values[i]!, loudest - 8) + 4) / 4;
  return mel;
}

/**
 * The power of each band in each frame. If centred, there is a frame for each whole hop; otherwise one for each hop at
 * which a whole frame fits.
 */
export function melPowers(samples: Float32Array, options: MelOptions): Mel {
  const { bins, fft: size, hop, centre = true, power = 2 } = options;
  const frames = centre ? Math.floor(samples.length / hop) : Math.max(0, Math.floor((samples.length - size) / hop) + 1);
  const bands = bandsOf(options);
  const window = hann(options.window ?? size, size);
  const fft = makeFft(size);
  const [one, two] = [new Float64Array(size), new Float64Array(size)];
  const out = { a: new Float64Array(size / 2 + 1), b: new Float64Array(size / 2 + 1) };
  const values = new Float32Array(bins * frames);
  const cut = (frame: number, into: Float64Array): void => {
    const start = frame * hop - (centre ? size / 2 : 0);
    for (let i = 0; i < size; i++) into[i] = window[i]! * samples[mirrored(start + i, samples.length)]!;
  };
  const fill = (frame: number, powers: Float64Array): void => {
    if (power === 1) for (let i = 0; i < powers.length; i++) powers[i] = Math.sqrt(powers[i]!);
    for (const [band, { first, weights }] of bands.entries()) {
      let sum = 0;
      for (let i = 0; i < weights.length; i++) sum += weights[i]! * powers[first + i]!;
      values[band * frames + frame] = sum;
    }
  };
  for (let frame = 0; frame < frames; frame += 2) {
    const isPair = frame + 1 < frames;
    cut(frame, one);
    if (isPair) cut(frame + 1, two);
    fft.powers(one, two, out);
    fill(frame, out.a);
    if (isPair) fill(frame + 1, out.b);
  }
  return { bins, frames, values };
}

/** The index in a signal that is mirrored at its ends; the outermost samples are not repeated. */
function mirrored(at: number, length: number): number {
  if (at >= 0 && at < length) return at;
  if (length === 1) return 0;
  const turn = 2 * (length - 1);
  const within = ((at % turn) + turn) % turn;
  return within < length ? within : turn - within;
}

/** The Hann window of a periodic signal, in the middle of a frame. */
function hann(length: number, size: number): Float64Array {
  const window = new Float64Array(size);
  const first = Math.floor((size - length) / 2);
  for (let i = 0; i < length; i++) window[first + i] = 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / length);
  return window;
}

/** The frequencies of a band, from `first` on, each with a weight. */
interface Band {
  readonly first: number;
  readonly weights: Float64Array;
}

/** Triangles between neighbouring points on the mel scale. */
function bandsOf({ bins, fft, range, scale = "slaney", norm }: MelOptions): Band[] {
  const { toMel, toHertz } = SCALES[scale];
  const [low, high] = [toMel(range[0]), toMel(range[1])];
  const edges = Array.from({ length: bins + 2 }, (_, i) => toHertz(low + ((high - low) * i) / (bins + 1)));
  return Array.from({ length: bins }, (_, band) => {
    const [left, middle, right] = [edges[band]!, edges[band + 1]!, edges[band + 2]!]; // two more than bins
    const height = norm === "slaney" ? 2 / (right - left) : 1;
    const all = Float64Array.from({ length: fft / 2 + 1 }, (_value, i) => {
      const hertz = (i * SAMPLE_RATE) / fft;
      return height * Math.max(0, Math.min((hertz - left) / (middle - left), (right - hertz) / (right - middle)));
    });
    const first = Math.max(
      0,
      all.findIndex((weight) => weight > 0),
    );
    return { first, weights: all.slice(first, all.findLastIndex((weight) => weight > 0) + 1) };
  });
}

interface Scale {
  readonly toMel: (hertz: number) => number;
  readonly toHertz: (mel: number) => number;
}

const LOG_STEP = Math.log(6.4) / 27;
const SCALES: Readonly<Record<"slaney" | "htk", Scale>> = {
  slaney: {
    toMel: (hertz) => (hertz < 1000 ? (3 * hertz) / 200 : 15 + Math.log(hertz / 1000) / LOG_STEP),
    toHertz: (mel) => (mel < 15 ? (200 * mel) / 3 : 1000 * Math.exp(LOG_STEP * (mel - 15))),
  },
  htk: {
    toMel: (hertz) => 2595 * Math.log10(1 + hertz / 700),
    toHertz: (mel) => 700 * (10 ** (mel / 2595) - 1),
  },
};
