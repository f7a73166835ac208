/**
 * Q4_1: 32 weights per block, f16 scale d, f16 minimum m, then 16 bytes of 4-bit q as in Q4_0.
 * w = d · q + m
 */
import { halfAt } from "../half.ts";
import { byBlocks, smallest, largest, putHalf } from "./blocks.ts";

export const q4_1 = byBlocks({
  name: "q4_1",
  ggmlType: 3,
  blockLen: 32,
  blockBytes: 20,
  unpack(src, at, out, y) {
    const d = halfAt(src, at);
    const m = halfAt(src, at + 2);
    for (let j = 0; j < 16; j++) {
      const q = src[at + 4 + j]!;
      out[y + j] = d * (q & 15) + m;
      out[y + j + 16] = d * (q >> 4) + m;
    }
  },
  /** `quantize_row_q4_1_ref` */
  pack(src, x, out, at) {
    const min = smallest(src, x, 32);
    const d = Math.fround(Math.fround(largest(src, x, 32) - min) / 15);
    const inverse = d === 0 ? 0 : Math.fround(1 / d);
    putHalf(out, at, d);
    putHalf(out, at + 2, min);
    for (let j = 0; j < 16; j++) {
      const low = Math.fround(Math.fround(src[x + j]! - min) * inverse);
      const high = Math.fround(Math.fround(src[x + j + 16]! - min) * inverse);
      out[at + 4 + j] = Math.min(15, Math.fround(low + 0.5)) | (Math.min(15, Math.fround(high + 0.5)) << 4);
    }
  },
});
