/**
 * What each block type means, one weight at a time and rounded to float32 wherever ggml's C rounds: slow, and written
 * apart from `src/quant`, to compare with. `b` is one block, `i` the weight's index in it.
 */
import { IQ4_LEVELS } from "../../src/quant/iq4_nl.ts";

const round = Math.fround;

const half = (b: Uint8Array, at: number): number => new DataView(b.buffer, b.byteOffset).getFloat16(at, true);

/** `count` bits of a little-endian bit string that starts at byte `at`, from bit `from`. */
function bits(b: Uint8Array, at: number, from: number, count: number): number {
  let value = 0;
  for (let k = 0; k < count; k++) value |= ((b[at + ((from + k) >> 3)]! >> ((from + k) & 7)) & 1) << k;
  return value;
}

/** The nibble of weight `i` in 16 bytes, low nibbles first. */
const nibble = (b: Uint8Array, at: number, i: number): number => bits(b, at, (i % 16) * 8 + (i < 16 ? 0 : 4), 4);

/** The field of `width` bits of weight `i` in runs of 32 bytes, each run holding 8 / width times 32 weights. */
function striped(b: Uint8Array, at: number, i: number, width: number): number {
  const perRun = (8 / width) * 32;
  const run = Math.floor(i / perRun);
  const lane = Math.floor((i % perRun) / 32);
  return bits(b, at + run * 32, (i % 32) * 8 + lane * width, width);
}

/** Scale and minimum of group `g` in the 12 bytes of q4_K and q5_K. */
function scaleMin(b: Uint8Array, g: number): [scale: number, min: number] {
  if (g < 4) return [bits(b, 4 + g, 0, 6), bits(b, 8 + g, 0, 6)];
  return [bits(b, 8 + g, 0, 4) + 16 * bits(b, g, 6, 2), bits(b, 8 + g, 4, 4) + 16 * bits(b, 4 + g, 6, 2)];
}

function kWeight(b: Uint8Array, i: number, q: number): number {
  const [scale, min] = scaleMin(b, i >> 5);
  return round(round(round(half(b, 0) * scale) * q) - round(half(b, 2) * min));
}

export const formulas: Readonly<Record<string, (b: Uint8Array, i: number) => number>> = {
  f32: (b) => new DataView(b.buffer, b.byteOffset).getFloat32(0, true),
  f16: (b) => half(b, 0),
  bf16: (b) => new Float32Array(Uint8Array.of(0, 0, b[0]!, b[1]!).buffer)[0]!,
  q4_0: (b, i) => round((nibble(b, 2, i) - 8) * half(b, 0)),
  q4_1: (b, i) => round(round(nibble(b, 4, i) * half(b, 0)) + half(b, 2)),
  q5_0: (b, i) => round((nibble(b, 6, i) + 16 * bits(b, 2, i, 1) - 16) * half(b, 0)),
  q5_1: (b, i) => round(round((nibble(b, 8, i) + 16 * bits(b, 4, i, 1)) * half(b, 0)) + half(b, 2)),
  q8_0: (b, i) => round(new Int8Array(b.buffer, b.byteOffset)[2 + i]! * half(b, 0)),
  q2_K: (b, i) => {
    const scale = round(half(b, 80) * bits(b, i >> 4, 0, 4));
    return round(round(scale * striped(b, 16, i, 2)) - round(half(b, 82) * bits(b, i >> 4, 4, 4)));
  },
  q3_K: (b, i) => {
    const g = i >> 4;
    const scale = bits(b, 96 + (g % 8), g < 8 ? 0 : 4, 4) + 16 * bits(b, 104 + (g % 4), 2 * (g >> 2), 2);
    return round(round(half(b, 108) * (scale - 32)) * (striped(b, 32, i, 2) - (striped(b, 0, i, 1) ? 0 : 4)));
  },
  q4_K: (b, i) => kWeight(b, i, striped(b, 16, i, 4)),
  q5_K: (b, i) => kWeight(b, i, striped(b, 48, i, 4) + 16 * striped(b, 16, i, 1)),
  q6_K: (b, i) => {
    // Within each 128 weights the low nibbles lie in 64 bytes: weights 0–63 in the low ones, 64–127 in the high ones.
    const low = bits(b, 64 * (i >> 7), (i % 64) * 8 + ((i >> 6) & 1) * 4, 4);
    const scale = new Int8Array(b.buffer, b.byteOffset)[192 + (i >> 4)]!;
    return round(round(half(b, 208) * scale) * (low + 16 * striped(b, 128, i, 2) - 32));
  },
  iq4_nl: (b, i) => round(half(b, 0) * IQ4_LEVELS[nibble(b, 2, i)]!),
  iq4_xs: (b, i) => {
    const g = i >> 5;
    const scale = bits(b, 4, 4 * g, 4) + 16 * bits(b, 2, 2 * g, 2);
    return round(round(half(b, 0) * (scale - 32)) * IQ4_LEVELS[nibble(b, 8 + 16 * g, i % 32)]!);
  },
  mxfp4: (b, i) => {
    const q = nibble(b, 1, i);
    const level = [0, 0.5, 1, 1.5, 2, 3, 4, 6][q & 7]!;
    return round((q > 8 ? -level : level) * 2 ** (b[0]! - 127));
  },
};
