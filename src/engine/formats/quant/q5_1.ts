/**
 * Q5_1: 32 weights per block, f16 scale d, f16 minimum m, then fifth bits and low nibbles as in Q5_0.
 * w = d · q + m
 */
import { halfAt } from "../half.ts";
import { byBlocks, smallest, largest, putHalf, putWord } from "./blocks.ts";

export const q5_1 = byBlocks({
  name: "q5_1",
  ggmlType: 7,
  blockLen: 32,
  blockBytes: 24,
  unpack(src, at, out, y) {
    const d = halfAt(src, at);
    const m = halfAt(src, at + 2);
    const low = src[at + 4]! | (src[at + 5]! << 8);
    const high = src[at + 6]! | (src[at + 7]! << 8);
    for (let j = 0; j < 16; j++) {
      const q = src[at + 8 + j]!;
      out[y + j] = d * ((q & 15) | (((low >> j) & 1) << 4)) + m;
      out[y + j + 16] = d * ((q >> 4) | (((high >> j) & 1) << 4)) + m;
    }
  },
  /** `quantize_row_q5_1_ref` */
  pack(src, x, out, at) {
    const min = smallest(src, x, 32);
    const d = Math.fround(Math.fround(largest(src, x, 32) - min) / 31);
    const inverse = d === 0 ? 0 : Math.fround(1 / d);
    putHalf(out, at, d);
    putHalf(out, at + 2, min);
    let fifths = 0;
    for (let j = 0; j < 16; j++) {
      const low = Math.fround(Math.fround(Math.fround(src[x + j]! - min) * inverse) + 0.5) | 0;
      const high = Math.fround(Math.fround(Math.fround(src[x + j + 16]! - min) * inverse) + 0.5) | 0;
      out[at + 8 + j] = (low & 15) | (high << 4);
      fifths |= ((low >> 4) << j) | ((high >> 4) << (j + 16));
    }
    putWord(out, at + 4, fifths);
  },
});
