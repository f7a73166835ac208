/**
 * Converts GGUF blocks for `MatMulNBits`: 4- or 8-bit integers in blocks of 16 or 32, one float32 scale each, and for
 * some types one float32 minimum per block. w = scale · (q − zero) + min with the operator's default zero point, 8 or
 * 128. Layouts: ggml-common.h. Formulas: ggml-quants.c (dequantize_row_*). Operator: ContribOperators.md,
 * com.microsoft.MatMulNBits.
 */
import { minK4, scaleK4 } from "../../src/engine/formats/quant/blocks.ts";
import { IQ4_LEVELS } from "../../src/engine/formats/quant/iq4_nl.ts";
import { E2M1_LEVELS } from "../../src/engine/formats/quant/mxfp4.ts";

/** Destination of packed weights; all three arrays are written from their start. */
export interface Packed {
  /** (weights · bits / 8) packed integers; at 4 bits the even weight of a pair is the low half. */
  readonly data: Uint8Array;
  /** (weights / block) */
  readonly scales: Float32Array;
  /** (weights / block) added to every weight of the block; untouched if `mins` is false. */
  readonly mins: Float32Array;
}

/** The packing of a block type. */
export interface Packing {
  readonly bits: 4 | 8;
  /** Weights per scale. */
  readonly block: 16 | 32 | 64;
  readonly mins: boolean;
  /**
   * Packs `count` GGUF blocks of `src`.
   * @param half float32 value of every float16 bit pattern, (65,536)
   */
  pack(src: Uint8Array, count: number, out: Packed, half: Float32Array): void;
}

/** Float32 value of each float16 bit pattern, (65,536). */
export function makeHalfTable(): Float32Array {
  const bits = new Uint16Array(65536);
  for (let i = 0; i < bits.length; i++) bits[i] = i;
  return Float32Array.from(new Float16Array(bits.buffer));
}

const u16 = (src: Uint8Array, at: number): number => src[at]! | (src[at + 1]! << 8);

/** Low halves of four bytes to two bytes, in order. */
function squeeze(word: number): number {
  const pairs = (word | (word >>> 4)) & 0x00ff00ff;
  return (pairs | (pairs >>> 8)) & 0xffff;
}

/** Splits `length` bytes whose low halves come first and whose high halves follow, as in all of ggml's 4-bit types. */
function nibbles(src: Uint8Array, from: number, data: Uint8Array, to: number, length: number): void {
  for (let i = 0; i < length; i += 4) {
    const word = src[from + i]! | (src[from + i + 1]! << 8) | (src[from + i + 2]! << 16) | (src[from + i + 3]! << 24);
    const low = squeeze(word & 0x0f0f0f0f);
    const high = squeeze((word >>> 4) & 0x0f0f0f0f);
    const at = to + (i >> 1);
    data[at] = low;
    data[at + 1] = low >>> 8;
    data[at + (length >> 1)] = high;
    data[at + (length >> 1) + 1] = high >>> 8;
  }
}

/** block_q4_0: d, 16 bytes. w = d · (q − 8) */
function packQ4_0(src: Uint8Array, count: number, { data, scales }: Packed, half: Float32Array): void {
  for (let b = 0; b < count; b++) {
    scales[b] = half[u16(src, b * 18)]!;
    nibbles(src, b * 18 + 2, data, b * 16, 16);
  }
}

/** block_q4_1: d, m, 16 bytes. w = d · q + m = d · (q − 8) + (m + 8 d) */
function packQ4_1(src: Uint8Array, count: number, { data, scales, mins }: Packed, half: Float32Array): void {
  for (let b = 0; b < count; b++) {
    const d = half[u16(src, b * 20)]!;
    scales[b] = d;
    mins[b] = half[u16(src, b * 20 + 2)]! + 8 * d;
    nibbles(src, b * 20 + 4, data, b * 16, 16);
  }
}

/** 32 five-bit values: 4 bytes of fifth bits, 16 bytes of nibbles; q − 16 is stored with the zero point 128. */
function fiveBits(src: Uint8Array, from: number, data: Uint8Array, to: number): void {
  for (let j = 0; j < 16; j++) {
    const byte = src[from + 4 + j]!;
    const low = (src[from + (j >> 3)]! >> (j & 7)) & 1;
    const high = (src[from + 2 + (j >> 3)]! >> (j & 7)) & 1;
    data[to + j] = 112 + ((byte & 15) | (low << 4));
    data[to + j + 16] = 112 + ((byte >> 4) | (high << 4));
  }
}

/** block_q5_0: d, fifth bits, 16 bytes. w = d · (q − 16) */
function packQ5_0(src: Uint8Array, count: number, { data, scales }: Packed, half: Float32Array): void {
  for (let b = 0; b < count; b++) {
    scales[b] = half[u16(src, b * 22)]!;
    fiveBits(src, b * 22 + 2, data, b * 32);
  }
}

/** block_q5_1: d, m, fifth bits, 16 bytes. w = d · q + m = d · (q − 16) + (m + 16 d) */
function packQ5_1(src: Uint8Array, count: number, { data, scales, mins }: Packed, half: Float32Array): void {
  for (let b = 0; b < count; b++) {
    const d = half[u16(src, b * 24)]!;
    scales[b] = d;
    mins[b] = half[u16(src, b * 24 + 2)]! + 16 * d;
    fiveBits(src, b * 24 + 4, data, b * 32);
  }
}

/** block_q8_0: d, 32 signed bytes. w = d · q */
function packQ8_0(src: Uint8Array, count: number, { data, scales }: Packed, half: Float32Array): void {
  for (let b = 0; b < count; b++) {
    const from = b * 34 + 2;
    scales[b] = half[u16(src, b * 34)]!;
    for (let j = 0; j < 32; j++) data[b * 32 + j] = src[from + j]! ^ 0x80;
  }
}

/**
 * block_q2_K: 16 bytes of (scale, min) nibbles, 64 bytes of 2-bit values, d, dmin. w = d · sc · q − dmin · m, per 16.
 * Stores q − 1, near its mean, so that the minima stay small: outside precise mode they are rounded.
 */
function packQ2K(src: Uint8Array, count: number, { data, scales, mins }: Packed, half: Float32Array): void {
  for (let b = 0; b < count; b++) {
    const at = b * 84;
    const d = half[u16(src, at + 80)]!;
    const dmin = half[u16(src, at + 82)]!;
    for (let i = 0; i < 16; i++) {
      const sm = src[at + i]!;
      const scale = d * (sm & 15);
      scales[b * 16 + i] = scale;
      mins[b * 16 + i] = scale - dmin * (sm >> 4);
      const from = at + 16 + (i >> 3) * 32 + (i & 1) * 16;
      const shift = ((i & 7) >> 1) * 2;
      for (let j = 0; j < 16; j += 2) {
        const even = (src[from + j]! >> shift) & 3;
        const odd = (src[from + j + 1]! >> shift) & 3;
        data[b * 128 + i * 8 + (j >> 1)] = (even + 7) | ((odd + 7) << 4);
      }
    }
  }
}

/**
 * block_q3_K: 32 bytes of third bits, 64 bytes of 2-bit values, 12 bytes of 6-bit scales, d. w = d · (sc − 32) · (q −
 * 4)
 */
function packQ3K(src: Uint8Array, count: number, { data, scales }: Packed, half: Float32Array): void {
  for (let b = 0; b < count; b++) {
    const at = b * 110;
    const d = half[u16(src, at + 108)]!;
    for (let i = 0; i < 16; i++) {
      const low = i < 8 ? src[at + 96 + i]! & 15 : src[at + 96 + i - 8]! >> 4;
      const high = (src[at + 104 + (i & 3)]! >> ((i >> 2) * 2)) & 3;
      scales[b * 16 + i] = d * ((low | (high << 4)) - 32);
      const from = at + 32 + (i >> 3) * 32 + (i & 1) * 16;
      const shift = ((i & 7) >> 1) * 2;
      for (let j = 0; j < 16; j += 2) {
        const bits = at + (i & 1) * 16 + j;
        const even = ((src[from + j]! >> shift) & 3) | (((src[bits]! >> (i >> 1)) & 1) << 2);
        const odd = ((src[from + j + 1]! >> shift) & 3) | (((src[bits + 1]! >> (i >> 1)) & 1) << 2);
        data[b * 128 + i * 8 + (j >> 1)] = (even + 4) | ((odd + 4) << 4);
      }
    }
  }
}

/** block_q4_K: d, dmin, 12 bytes of 6-bit scales and minima, 128 bytes. w = d · sc · q − dmin · m, per 32 */
function packQ4K(src: Uint8Array, count: number, { data, scales, mins }: Packed, half: Float32Array): void {
  for (let b = 0; b < count; b++) {
    const at = b * 144;
    const d = half[u16(src, at)]!;
    const dmin = half[u16(src, at + 2)]!;
    for (let i = 0; i < 8; i++) {
      const scale = d * scaleK4(src, at + 4, i);
      scales[b * 8 + i] = scale;
      mins[b * 8 + i] = 8 * scale - dmin * minK4(src, at + 4, i);
    }
    for (let i = 0; i < 4; i++) nibbles(src, at + 16 + i * 32, data, b * 128 + i * 32, 32);
  }
}

/**
 * block_q5_K: d, dmin, 12 bytes of scales and minima, 32 bytes of fifth bits, 128 bytes. w = d · sc · q − dmin · m, per
 * 32
 */
function packQ5K(src: Uint8Array, count: number, { data, scales, mins }: Packed, half: Float32Array): void {
  for (let b = 0; b < count; b++) {
    const at = b * 176;
    const d = half[u16(src, at)]!;
    const dmin = half[u16(src, at + 2)]!;
    for (let i = 0; i < 8; i++) {
      const scale = d * scaleK4(src, at + 4, i);
      scales[b * 8 + i] = scale;
      mins[b * 8 + i] = 16 * scale - dmin * minK4(src, at + 4, i);
      const from = at + 48 + (i >> 1) * 32;
      const shift = (i & 1) * 4;
      for (let j = 0; j < 32; j++) {
        const fifth = (src[at + 16 + j]! >> i) & 1;
        data[b * 256 + i * 32 + j] = 112 + (((src[from + j]! >> shift) & 15) | (fifth << 4));
      }
    }
  }
}

/** block_q6_K: 128 bytes of low nibbles, 64 bytes of high pairs, 16 signed scales, d. w = d · sc · (q − 32), per 16 */
function packQ6K(src: Uint8Array, count: number, { data, scales }: Packed, half: Float32Array): void {
  for (let b = 0; b < count; b++) {
    const at = b * 210;
    const d = half[u16(src, at + 208)]!;
    for (let i = 0; i < 16; i++) scales[b * 16 + i] = d * ((src[at + 192 + i]! << 24) >> 24);
    for (let i = 0; i < 8; i++) {
      const low = at + (i >> 2) * 64 + (i & 1) * 32;
      const high = at + 128 + (i >> 2) * 32;
      const lowShift = i & 2 ? 4 : 0;
      const highShift = (i & 3) * 2;
      const to = b * 256 + i * 32;
      for (let j = 0; j < 32; j++) {
        data[to + j] = 96 + (((src[low + j]! >> lowShift) & 15) | (((src[high + j]! >> highShift) & 3) << 4));
      }
    }
  }
}

const IQ4_VALUES = Int8Array.from(IQ4_LEVELS);
const MXFP4_VALUES = Int8Array.from(E2M1_LEVELS);

/** 16 bytes of table indexes: low halves are the first 16 weights. */
function lookUp(src: Uint8Array, from: number, data: Uint8Array, to: number, values: Int8Array): void {
  for (let j = 0; j < 16; j++) {
    const byte = src[from + j]!;
    data[to + j] = values[byte & 15]! + 128;
    data[to + j + 16] = values[byte >> 4]! + 128;
  }
}

/** block_iq4_nl: d, 16 bytes. w = d · value[q] */
function packIq4Nl(src: Uint8Array, count: number, { data, scales }: Packed, half: Float32Array): void {
  for (let b = 0; b < count; b++) {
    scales[b] = half[u16(src, b * 18)]!;
    lookUp(src, b * 18 + 2, data, b * 32, IQ4_VALUES);
  }
}

/**
 * block_iq4_xs: d, 16 bits of high scale pairs, 4 bytes of low scale nibbles, 128 bytes. w = d · (sc − 32) · value[q],
 * per 32
 */
function packIq4Xs(src: Uint8Array, count: number, { data, scales }: Packed, half: Float32Array): void {
  for (let b = 0; b < count; b++) {
    const at = b * 136;
    const d = half[u16(src, at)]!;
    const highs = u16(src, at + 2);
    for (let i = 0; i < 8; i++) {
      const scale = ((src[at + 4 + (i >> 1)]! >> ((i & 1) * 4)) & 15) | (((highs >> (i * 2)) & 3) << 4);
      scales[b * 8 + i] = d * (scale - 32);
      lookUp(src, at + 8 + i * 16, data, b * 256 + i * 32, IQ4_VALUES);
    }
  }
}

/** block_mxfp4: exponent e, 16 bytes. w = 2^(e − 128) · value[q] */
function packMxfp4(src: Uint8Array, count: number, { data, scales }: Packed): void {
  for (let b = 0; b < count; b++) {
    scales[b] = 2 ** (src[b * 17]! - 128);
    lookUp(src, b * 17 + 1, data, b * 32, MXFP4_VALUES);
  }
}

/** By ggml type name. Other types are rounded (`packFloats`). */
export const PACKINGS: Readonly<Record<string, Packing>> = {
  q4_0: { bits: 4, block: 32, mins: false, pack: packQ4_0 },
  q4_1: { bits: 4, block: 32, mins: true, pack: packQ4_1 },
  q5_0: { bits: 8, block: 32, mins: false, pack: packQ5_0 },
  q5_1: { bits: 8, block: 32, mins: true, pack: packQ5_1 },
  q8_0: { bits: 8, block: 32, mins: false, pack: packQ8_0 },
  q2_K: { bits: 4, block: 16, mins: true, pack: packQ2K },
  q3_K: { bits: 4, block: 16, mins: false, pack: packQ3K },
  q4_K: { bits: 4, block: 32, mins: true, pack: packQ4K },
  q5_K: { bits: 8, block: 32, mins: true, pack: packQ5K },
  q6_K: { bits: 8, block: 16, mins: false, pack: packQ6K },
  iq4_nl: { bits: 8, block: 32, mins: false, pack: packIq4Nl },
  iq4_xs: { bits: 8, block: 32, mins: false, pack: packIq4Xs },
  mxfp4: { bits: 8, block: 32, mins: false, pack: packMxfp4 },
};

/** Packing of all other types, through float32: float16 and others to blocks of 32, like q8_0. */
export const FLOAT_PACKING = { bits: 8, block: 32, mins: false } as const;

/**
 * Types whose exact packing is large, and their rounding outside precise mode. q6_K: 12 bits become 9, which adds a
 * twentieth to the type's own error and makes decode a tenth faster. llama.cpp rounds the activations multiplied with
 * it in blocks of 256.
 */
export const ROUNDED: Readonly<Record<string, Omit<Packing, "pack">>> = { q6_K: { bits: 8, block: 64, mins: false } };

/** Rounds one row to 8 bits in blocks; a last short block is filled with zeros. A NaN makes the block's scale NaN. */
export function packFloats(row: Float32Array, out: Packed, { at, block }: { at: number; block: number }): void {
  for (let from = 0, b = at; from < row.length; from += block, b++) {
    const end = Math.min(from + block, row.length);
    let max = 0;
    for (let i = from; i < end; i++) {
      const size = row[i]! < 0 ? -row[i]! : row[i]!;
      if (size > max || Number.isNaN(size)) max = size;
    }
    out.scales[b] = max / 127;
    const inverse = max > 0 ? 127 / max : 0;
    const to = b * block - from;
    for (let i = from; i < end; i++) out.data[to + i] = 128.5 + row[i]! * inverse; // truncated: rounds to nearest
    for (let i = end; i < from + block; i++) out.data[to + i] = 128;
  }
}
