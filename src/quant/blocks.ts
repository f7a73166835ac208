/**
 * What several block types share: the bounds check, and the packed 6-bit scales of the K types.
 *
 * Why no dequantizer rounds by hand: ggml computes in float32, we in float64 and round once, when a `Float32Array`
 * stores the result. Both agree to the last bit: every product has at most 24 significant bits (f16 scale 11, sub-scale
 * and weight together 13 at most), so float32 holds it exactly; the one sum is of multiples of 2^-24 below 2^27, so
 * float64 does.
 *
 * Formulas: `dequantize_row_*` in ggml-quants.c. Layouts: `block_*` in ggml-common.h.
 */
import { assert } from "../base/errors.ts";
import type { Quant } from "./quant.ts";

/** Throws unless `out` is whole blocks and `src` holds them all. */
export function checkBlocks(quant: Quant, src: Uint8Array, out: Float32Array): void {
  const blocks = out.length / quant.blockLen;
  assert(
    Number.isInteger(blocks) && src.length >= blocks * quant.blockBytes,
    `${quant.name}: ${out.length} weights do not fit ${src.length} bytes of ${quant.blockLen}-weight blocks`,
  );
}

/** Scale `k` of 8 in the 12 bytes at `at` of q4_K and q5_K: 6 bits (`get_scale_min_k4`). */
export function scaleK4(src: Uint8Array, at: number, k: number): number {
  return k < 4 ? src[at + k]! & 63 : (src[at + k + 4]! & 15) | ((src[at + k - 4]! >> 6) << 4);
}

/** Minimum `k` of 8 in the same 12 bytes: 6 bits. */
export function minK4(src: Uint8Array, at: number, k: number): number {
  return k < 4 ? src[at + k + 4]! & 63 : (src[at + k + 4]! >> 4) | ((src[at + k]! >> 6) << 4);
}
