/** Spectrograms of recordings in parts, so that other work can run in between, and Whisper's pieces of them. */
import { melPowers, whisperMel, type MelOptions } from "../audio/mel.ts";
import { SAMPLE_RATE } from "../audio/sound.ts";
import type { Steps } from "../vision/steps.ts";
import type { Sheet } from "./encoder-spec.ts";

export const HOP = 160;
const PIECE = 30 * SAMPLE_RATE;
/** Frames of a piece. */
export const FRAMES = PIECE / HOP;
/** Logarithms more than this below the maximum are raised to that limit. */
const RANGE = 8;
/** Smaller values have no logarithm. */
const FLOOR = 1e-10;
/** Frames between two pauses. */
const PART = 256;

/** The mapped power of each band, for each hop at which a whole frame fits: (frames, bins). */
export function* spectrogram(
  samples: Float32Array,
  options: MelOptions,
  map: (value: number) => number,
): Steps<Float32Array> {
  const { bins, fft, hop } = options;
  const all = samples.length < fft ? 0 : Math.floor((samples.length - fft) / hop) + 1;
  const out = new Float32Array(all * bins);
  for (let first = 0; first < all; first += PART) {
    const count = Math.min(PART, all - first);
    const part = samples.subarray(first * hop, (first + count - 1) * hop + fft);
    const { values } = melPowers(part, { ...options, centre: false });
    for (let frame = 0; frame < count; frame++)
      for (let bin = 0; bin < bins; bin++) out[(first + frame) * bins + bin] = map(values[bin * count + frame]!);
    yield;
  }
  return out;
}

/** The frames of a recording around each hop, in Whisper's range: (frames, bins). */
export function* whisperFrames(samples: Float32Array, bins: number): Steps<Float32Array> {
  const values = yield* spectrogram(samples, whisperMel(bins), (value) => Math.log10(Math.max(FLOOR, value)));
  const floor = values.reduce((most, value) => Math.max(most, value), -Infinity) - RANGE;
  for (let i = 0; i < values.length; i++) values[i] = (Math.max(values[i]!, floor) + 4) / 4;
  return values;
}

/** Half of a frame before the beginning of a recording is mirrored. */
export function withBeginning(samples: Float32Array, length: number, { fft }: Pick<MelOptions, "fft">): Float32Array {
  const padded = new Float32Array(length);
  const edge = fft / 2;
  for (let i = 0; i < edge; i++) padded[i] = samples[edge - i] ?? 0;
  padded.set(samples.subarray(0, length - edge), edge);
  return padded;
}

/**
 * Number of pieces of 30 seconds. llama.cpp adds a piece of silence to a recording that ends within a frame of a
 * piece's end; the originals do not.
 */
export const pieceCount = (samples: number): number => Math.max(1, Math.ceil(samples / PIECE));

/** Pieces of (frames, bins), the last padded with silence. */
export function* whisperPieces(samples: Float32Array, bins: number): Steps<readonly Sheet[]> {
  const count = pieceCount(samples.length);
  const options = whisperMel(bins);
  const values = yield* whisperFrames(withBeginning(samples, count * PIECE + options.fft, options), bins);
  return Array.from({ length: count }, (_, i) => ({
    values: values.subarray(i * FRAMES * bins, (i + 1) * FRAMES * bins),
    batches: 1,
    time: FRAMES,
    bins: 1,
    channels: bins,
  }));
}
