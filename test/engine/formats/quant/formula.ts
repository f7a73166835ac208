/**
 * The formula of each block type, one weight at a time and rounded to float32 wherever ggml's C rounds: slow, and
 * written independently of `src/engine/formats/quant`, to compare with. `b` is one block, `i` the weight's index in it.
 */
import { IQ1_GRID } from "../../../../src/engine/formats/quant/iq1_s.ts";
import { IQ2_S_GRID } from "../../../../src/engine/formats/quant/iq2_s.ts";
import { IQ2_XS_GRID } from "../../../../src/engine/formats/quant/iq2_xs.ts";
import { IQ2_XXS_GRID } from "../../../../src/engine/formats/quant/iq2_xxs.ts";
import { IQ3_S_GRID } from "../../../../src/engine/formats/quant/iq3_s.ts";
import { IQ3_XXS_GRID } from "../../../../src/engine/formats/quant/iq3_xxs.ts";
import { IQ4_LEVELS } from "../../../../src/engine/formats/quant/iq4_nl.ts";

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

/** The sign of weight `k` of 8: seven have a bit from `from` on; the last makes the number of minus signs even. */
function evenSign(b: Uint8Array, at: number, { from, k }: { from: number; k: number }): number {
  let ones = 0;
  for (let n = 0; n < 7; n++) ones += bits(b, at, from + n, 1);
  return (k < 7 ? bits(b, at, from + k, 1) : ones % 2) === 1 ? -1 : 1;
}

/** One of IQ1's weights: its grid point shifted by an eighth. */
const shifted = (point: number, i: number, minus: number): number =>
  IQ1_GRID[point * 8 + (i % 8)]! + (minus ? -0.125 : 0.125);

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
  nvfp4: (b, i) => {
    const code = b[i >> 4]!;
    const [exponent, mantissa] = [bits(b, i >> 4, 3, 4), code & 7];
    const fraction = exponent === 0 ? mantissa / 4 : 1 + mantissa / 8;
    const scale = code === 0x7f ? 0 : (fraction / 2) * 2 ** (exponent - 7);
    const q = bits(b, 4 + 8 * (i >> 4) + (i % 8), (i & 8) >> 1, 4);
    const level = [0, 1, 2, 3, 4, 6, 8, 12][q & 7]!;
    return round((q > 8 ? -level : level) * scale);
  },
  q1_0: (b, i) => (bits(b, 2, i, 1) === 1 ? half(b, 0) : -half(b, 0)),
  q2_0: (b, i) => round((bits(b, 2, 2 * i, 2) - 1) * half(b, 0)),
  iq2_xxs: (b, i) => {
    const at = 2 + 8 * (i >> 5);
    const part = (i >> 3) % 4;
    const scale = round(round(half(b, 0) * (0.5 + bits(b, at + 4, 28, 4))) * 0.25);
    const sign = evenSign(b, at + 4, { from: 7 * part, k: i % 8 });
    return round(round(scale * IQ2_XXS_GRID[b[at + part]! * 8 + (i % 8)]!) * sign);
  },
  iq2_xs: (b, i) => {
    const scale = round(round(half(b, 0) * (0.5 + bits(b, 66, 4 * (i >> 4), 4))) * 0.25);
    const sign = evenSign(b, 2, { from: 16 * (i >> 3) + 9, k: i % 8 });
    return round(round(scale * IQ2_XS_GRID[bits(b, 2, 16 * (i >> 3), 9) * 8 + (i % 8)]!) * sign);
  },
  iq2_s: (b, i) => {
    const scale = round(round(half(b, 0) * (0.5 + bits(b, 74, 4 * (i >> 4), 4))) * 0.25);
    const point = b[2 + (i >> 3)]! + 256 * bits(b, 66, 2 * (i >> 3), 2);
    return round(round(scale * IQ2_S_GRID[point * 8 + (i % 8)]!) * (bits(b, 34, i, 1) ? -1 : 1));
  },
  iq3_xxs: (b, i) => {
    const at = 66 + 4 * (i >> 5);
    const scale = round(round(half(b, 0) * (0.5 + bits(b, at, 28, 4))) * 0.5);
    const sign = evenSign(b, at, { from: 7 * ((i >> 3) % 4), k: i % 8 });
    return round(round(scale * IQ3_XXS_GRID[b[2 + (i >> 2)]! * 4 + (i % 4)]!) * sign);
  },
  iq3_s: (b, i) => {
    const scale = round(half(b, 0) * (1 + 2 * bits(b, 106, 4 * (i >> 5), 4)));
    const point = b[2 + (i >> 2)]! + 256 * bits(b, 66, i >> 2, 1);
    return round(round(scale * IQ3_S_GRID[point * 4 + (i % 4)]!) * (bits(b, 74, i, 1) ? -1 : 1));
  },
  iq1_s: (b, i) => {
    const group = 34 + 2 * (i >> 5);
    const scale = round(half(b, 0) * (2 * bits(b, group, 12, 3) + 1));
    const point = b[2 + (i >> 3)]! + 256 * bits(b, group, 3 * ((i >> 3) % 4), 3);
    return round(scale * shifted(point, i, bits(b, group, 15, 1)));
  },
  iq1_m: (b, i) => {
    const parts = Uint8Array.from([0, 1], (k) => bits(b, 48, 32 * k + 12, 4) + 16 * bits(b, 48, 32 * k + 28, 4));
    const scale = round(half(parts, 0) * (2 * bits(b, 48, 16 * (i >> 6) + 3 * ((i >> 4) % 4), 3) + 1));
    const point = b[i >> 3]! + 256 * bits(b, 32, 4 * (i >> 3), 3);
    return round(scale * shifted(point, i, bits(b, 32, 4 * (i >> 3) + 3, 1)));
  },
  tq1_0: (b, i) => {
    const [at, run, k] = i < 160 ? [0, 32, i] : i < 240 ? [32, 16, i - 160] : [48, 4, i - 240];
    const fraction = (b[at + (k % run)]! * 3 ** Math.floor(k / run)) % 256;
    return round((Math.floor((fraction * 3) / 256) - 1) * half(b, 52));
  },
  tq2_0: (b, i) => round((striped(b, 0, i, 2) - 1) * half(b, 64)),
};
