/** Decoded sound in the form that models read: one channel at 16,000 samples per second. */
import { makeResampler, type Resampler } from "./resample.ts";

/** Samples per second of every model's input. */
export const SAMPLE_RATE = 16_000;
/** Limit of a recording: 460 MB of samples. */
export const RECORDING_SECONDS_MAX = 2 * 60 * 60;
export const CHANNELS_MAX = 8;
const [RATE_MIN, RATE_MAX] = [1000, 192_000];

/** There are more samples than allowed. */
export class TooLong extends Error {}

/** Collects the parts of a recording. */
export interface Sound {
  /**
   * Adds the same part of all channels. Throws `TooLong`, and an error for an impossible rate, number of channels or
   * sample.
   */
  add(channels: readonly Float32Array[], rate: number): void;
  /** All samples. */
  end(): Float32Array;
}

export function makeSound(samplesMax: number): Sound {
  const parts: Float32Array[] = [];
  let [length, rateNow] = [0, 0];
  let resampler: Resampler | undefined;
  const keep = (part: Float32Array): void => {
    length += part.length;
    if (length > samplesMax) throw new TooLong();
    parts.push(part);
  };
  return {
    add(channels, rate) {
      if (channels.length < 1 || channels.length > CHANNELS_MAX)
        throw new Error(`expected 1 to ${CHANNELS_MAX} channels, got ${channels.length}`);
      if (!(rate >= RATE_MIN && rate <= RATE_MAX))
        throw new Error(`expected ${RATE_MIN} to ${RATE_MAX} samples per second, got ${rate}`);
      if (rate !== rateNow) {
        if (resampler) keep(resampler.end());
        resampler = makeResampler(rate, SAMPLE_RATE);
        rateNow = rate;
      }
      keep(resampler!.add(meanOf(channels))); // made above
    },
    end() {
      if (resampler) keep(resampler.end());
      const all = new Float32Array(length);
      let at = 0;
      for (const part of parts) {
        all.set(part, at);
        at += part.length;
      }
      return all;
    },
  };
}

function meanOf(channels: readonly Float32Array[]): Float32Array {
  const out = new Float32Array(channels[0]!.length); // one or more
  for (let i = 0; i < out.length; i++) {
    let sum = 0;
    for (const channel of channels) sum += channel[i]!;
    out[i] = sum / channels.length;
    if (!Number.isFinite(out[i]!)) throw new Error(`expected numbers, got the sample ${out[i]}`);
  }
  return out;
}

/** A sound that gets what is added from one second to another. */
export function makePart(sound: Sound, from: number, to: number): Sound {
  let seconds = 0;
  return {
    add(channels, rate) {
      const length = channels[0]?.length ?? 0;
      const [first, end] = [from, to].map((limit) =>
        Math.min(length, Math.max(0, Math.round((limit - seconds) * rate))),
      ) as [number, number];
      seconds += length / rate;
      if (end > first)
        sound.add(
          channels.map((channel) => channel.subarray(first, end)),
          rate,
        );
    },
    end: () => sound.end(),
  };
}
