/**
 * The common part of block types: the bounds check, the packed 6-bit scales of the K types, and bit packing.
 *
 * Dequantizers need no explicit rounding: ggml computes in float32, we in float64 and round once, when a `Float32Array`
 * stores the result. Both agree to the last bit: every product has at most 24 significant bits (f16 scale 11, sub-scale
 * and weight together 13 at most), so float32 holds it exactly; the one sum is of multiples of 2^-24 below 2^27, so
 * float64 does.
 *
 * Formulas: `dequantize_row_*` in ggml-quants.c. Layouts: `block_*` in ggml-common.h.
 */
import { assert } from "../../../base/index.ts";
import { floatToHalf } from "../half.ts";
import type { Quant } from "./quant.ts";

/** Throws unless `out` is a multiple of whole blocks and `src` holds them all. */
export function checkBlocks(quant: Omit<Quant, "dequantize">, src: Uint8Array, out: Float32Array): void {
  const blocks = out.length / quant.blockLen;
  assert(
    Number.isInteger(blocks) && src.length >= blocks * quant.blockBytes,
    `${quant.name}: ${out.length} weights do not fit ${src.length} bytes of ${quant.blockLen}-weight blocks`,
  );
}

interface BlockType extends Omit<Quant, "dequantize" | "quantize"> {
  /** Unpacks the block at byte `at` into the weights from `y` on. */
  unpack(src: Uint8Array, at: number, out: Float32Array, y: number): void;
  /** Packs the weights from `x` on into the block at byte `at`. Read-only types have none. */
  pack?(src: Float32Array, x: number, out: Uint8Array, at: number): void;
}

/** A type whose blocks are unpacked and packed one by one. */
export function byBlocks({ unpack, pack, ...type }: BlockType): Quant {
  const { blockLen, blockBytes } = type;
  return {
    ...type,
    dequantize(src, out) {
      checkBlocks(type, src, out);
      for (let y = 0, at = 0; y < out.length; y += blockLen, at += blockBytes) unpack(src, at, out, y);
    },
    ...(pack && {
      quantize(src: Float32Array, out: Uint8Array) {
        checkBlocks(type, out, src);
        for (let x = 0, at = 0; x < src.length; x += blockLen, at += blockBytes) pack(src, x, out, at);
      },
    }),
  };
}

/** Bytes of a row of `inDim` weights. */
export const rowBytesOf = ({ quant, inDim }: { readonly quant: Quant; readonly inDim: number }): number =>
  (inDim / quant.blockLen) * quant.blockBytes;

/** Scale `k` of 8 in the 12 bytes at `at` of q4_K and q5_K: 6 bits (`get_scale_min_k4`). */
export function scaleK4(src: Uint8Array, at: number, k: number): number {
  return k < 4 ? src[at + k]! & 63 : (src[at + k + 4]! & 15) | ((src[at + k - 4]! >> 6) << 4);
}

/** Minimum `k` of 8 in the same 12 bytes: 6 bits. */
export function minK4(src: Uint8Array, at: number, k: number): number {
  return k < 4 ? src[at + k + 4]! & 63 : (src[at + k + 4]! >> 4) | ((src[at + k]! >> 6) << 4);
}

/** Packs scales and minimums for `scaleK4` and `minK4`. */
export function putScalesK4(scales: Uint8Array, mins: Uint8Array, out: Uint8Array, at: number): void {
  for (let k = 0; k < 4; k++) {
    out[at + k] = scales[k]! | ((scales[k + 4]! >> 4) << 6);
    out[at + k + 4] = mins[k]! | ((mins[k + 4]! >> 4) << 6);
    out[at + k + 8] = (scales[k + 4]! & 15) | ((mins[k + 4]! & 15) << 4);
  }
}

/** The low nibbles of 256 levels in 128 bytes: 32 bytes per 64 levels, low nibbles the first 32. */
export function putNibbles(levels: Uint8Array, out: Uint8Array, at: number): void {
  for (let run = 0; run < 4; run++) {
    for (let j = 0; j < 32; j++) {
      out[at + run * 32 + j] = (levels[run * 64 + j]! & 15) | ((levels[run * 64 + 32 + j]! & 15) << 4);
    }
  }
}

/** The low 2 bits of 256 levels in 64 bytes: 32 bytes per 128 levels, four runs of 32. */
export function putPairs(levels: Uint8Array, out: Uint8Array, at: number): void {
  for (let half = 0; half < 2; half++) {
    for (let j = 0; j < 32; j++) {
      let pairs = 0;
      for (let run = 0; run < 4; run++) pairs |= (levels[half * 128 + run * 32 + j]! & 3) << (2 * run);
      out[at + half * 32 + j] = pairs;
    }
  }
}

export function putU16(out: Uint8Array, at: number, bits: number): void {
  out[at] = bits;
  out[at + 1] = bits >> 8;
}

export function putWord(out: Uint8Array, at: number, bits: number): void {
  putU16(out, at, bits);
  putU16(out, at + 2, bits >>> 16);
}

/** A half float, at any alignment. */
export function putHalf(out: Uint8Array, at: number, value: number): void {
  putU16(out, at, floatToHalf(value));
}

/** The value of largest magnitude among `len` values, with its sign: the first of equal ones; 0 if all are 0. */
export function extreme(x: Float32Array, at: number, len: number): number {
  let value = 0;
  for (let j = at; j < at + len; j++) if (Math.abs(x[j]!) > Math.abs(value)) value = x[j]!;
  return value;
}

export function smallest(x: Float32Array, at: number, len: number): number {
  let value = x[at]!;
  for (let j = at + 1; j < at + len; j++) if (x[j]! < value) value = x[j]!;
  return value;
}

export function largest(x: Float32Array, at: number, len: number): number {
  let value = x[at]!;
  for (let j = at + 1; j < at + len; j++) if (x[j]! > value) value = x[j]!;
  return value;
}
