/**
 * Q5_1: 32 weights per block, f16 scale d, f16 minimum m, then fifth bits and low nibbles as in Q5_0.
 * w = d · q + m
 */
import { halfAt } from "../base/half.ts";
import { checkBlocks } from "./blocks.ts";
import type { Quant } from "./quant.ts";

export const q5_1: Quant = {
  name: "q5_1",
  ggmlType: 7,
  blockLen: 32,
  blockBytes: 24,
  dequantize(src, out) {
    checkBlocks(q5_1, src, out);
    for (let y = 0, at = 0; y < out.length; y += 32, at += 24) {
      const d = halfAt(src, at);
      const m = halfAt(src, at + 2);
      const low = src[at + 4]! | (src[at + 5]! << 8);
      const high = src[at + 6]! | (src[at + 7]! << 8);
      for (let j = 0; j < 16; j++) {
        const q = src[at + 8 + j]!;
        out[y + j] = d * ((q & 15) | (((low >> j) & 1) << 4)) + m;
        out[y + j + 16] = d * ((q >> 4) | (((high >> j) & 1) << 4)) + m;
      }
    }
  },
};
