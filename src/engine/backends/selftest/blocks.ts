/** Random weights of every block type, made of integers alone: the same bytes on every machine. */
import { floatToHalf } from "../../formats/half.ts";
import { quants, type QuantName } from "../../formats/quant/index.ts";
import type { Rng } from "../../text/rng.ts";

/** Offsets of a block's float16 scales; the standard deviation of its values where the scales are 1. (ggml-common.h) */
const HALF_SCALES: Readonly<Partial<Record<QuantName, { at: readonly number[]; size: number }>>> = {
  q4_0: { at: [0], size: 4.6 },
  q4_1: { at: [0, 2], size: 4.6 },
  q5_0: { at: [0], size: 9.2 },
  q5_1: { at: [0, 2], size: 9.2 },
  q8_0: { at: [0], size: 74 },
  q2_K: { at: [80, 82], size: 12 },
  q3_K: { at: [108], size: 43 },
  q4_K: { at: [0, 2], size: 190 },
  q5_K: { at: [0, 2], size: 390 },
  q6_K: { at: [208], size: 1370 },
  iq4_nl: { at: [0], size: 70 },
  iq4_xs: { at: [0], size: 1300 },
  iq2_xxs: { at: [0], size: 53 },
  iq2_xs: { at: [0], size: 56 },
  iq2_s: { at: [0], size: 56 },
  iq3_xxs: { at: [0], size: 142 },
  iq3_s: { at: [0], size: 140 },
  iq1_s: { at: [0], size: 7.2 },
  tq1_0: { at: [52], size: 0.82 },
  tq2_0: { at: [64], size: 1.2 },
  q1_0: { at: [0], size: 1 },
  q2_0: { at: [0], size: 1.2 },
};

/** Number of different scales of a matrix: a prime, so that rows do not all begin with the same one. */
const SCALES = 37;

/** A float16 of either sign, of about this size. */
const drawScale = (size: number, rng: Rng): number =>
  floatToHalf(size * (0.5 + rng.float()) * (rng.float() < 0.5 ? -1 : 1));

interface Scaling {
  readonly size: number;
  readonly rng: Rng;
  /** Number of different scales, which blocks use in turn; default: one per block. */
  readonly distinct?: number;
}

/** Sets the scales of blocks of random bytes, so that their values have about this size. */
export function setScales(name: QuantName, bytes: Uint8Array, { size, rng, distinct }: Scaling): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const scales = HALF_SCALES[name];
  const draw = (): number => drawScale(size / scales!.size, rng);
  const drawn = scales && Array.from({ length: distinct ?? 0 }, draw);
  let next = 0;
  for (let block = 0; block < bytes.length; block += quants[name].blockBytes) {
    for (const at of scales?.at ?? []) {
      view.setUint16(block + at, distinct === undefined ? draw() : drawn![next++ % distinct]!, true);
    }
    // IQ1_M spreads its float16 scale over the top four bits of four words; values deviate by 7.2.
    if (name === "iq1_m") {
      const half = floatToHalf((size / 7.2) * (0.5 + rng.float()));
      for (let i = 0; i < 4; i++) {
        const at = block + 48 + 2 * i;
        view.setUint16(at, (view.getUint16(at, true) & 0x0fff) | (((half >> (4 * i)) & 15) << 12), true);
      }
    }
    // NVFP4 has four float8 scales without a sign (four bits of exponent, three of mantissa); values deviate by 5.
    if (name === "nvfp4") {
      const exponent = Math.min(14, Math.max(1, Math.round(8 + Math.log2(size / 5))));
      for (let part = 0; part < 4; part++) bytes[block + part] = (exponent << 3) | (rng.uint32() & 7);
    }
    // MXFP4's scale is a power of two, biased by 128 because its values are doubled; values deviate by 5.
    if (name === "mxfp4") bytes[block] = 128 + Math.round(Math.log2(size / 5)) + (rng.uint32() % 3) - 1;
  }
}

/** Random words, drawn once: thousands of draws per matrix would take most of a self-test. */
export type RandomWords = Uint32Array;

const POOL_WORDS = 2 ** 12; // a power of two

export const makeRandomWords = (rng: Rng): RandomWords => Uint32Array.from({ length: POOL_WORDS }, () => rng.uint32());

/** Packed blocks of `count` random weights of about this size. */
export function randomWeights(
  name: QuantName,
  count: number,
  { size, rng, pool }: { size: number; rng: Rng; pool: RandomWords },
): Uint8Array {
  const { blockLen, blockBytes } = quants[name];
  const bytes = new Uint8Array((count / blockLen) * blockBytes);
  const first = rng.uint32() % POOL_WORDS;
  if (name === "f32" || name === "f16" || name === "bf16") {
    const values = new Float32Array(count);
    for (let i = 0; i < count; i++) values[i] = size * ((pool[(first + i) & (POOL_WORDS - 1)]! >>> 8) / 2 ** 22 - 2);
    quants[name].quantize!(values, bytes); // lossless: these types store float values
    return bytes;
  }
  const drawn = new Uint8Array(pool.buffer);
  for (let at = 0, from = 4 * first; at < bytes.length; from = 0) {
    const part = drawn.subarray(from, from + bytes.length - at);
    bytes.set(part, at);
    at += part.length;
  }
  setScales(name, bytes, { size, rng, distinct: SCALES });
  return bytes;
}
