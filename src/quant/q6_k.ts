/**
 * Q6_K: 256 weights per block in 16 groups of 16. 128 bytes of low nibbles, 64 bytes of high 2-bit pairs, 16 × i8 group
 * scales s, f16 d. Each half of the block (64 low bytes, 32 high bytes) holds 128 weights as four runs of 32: run r
 * takes the low bytes of 32·(r mod 2), its nibble r div 2, and bits 2r and 2r+1 of the high bytes.
 * w = d · s · (q − 32)
 */
import { halfAt } from "../base/half.ts";
import { checkBlocks } from "./blocks.ts";
import type { Quant } from "./quant.ts";

export const q6_K: Quant = {
  name: "q6_K",
  ggmlType: 14,
  blockLen: 256,
  blockBytes: 210,
  dequantize(src, out) {
    checkBlocks(q6_K, src, out);
    for (let y = 0, at = 0; y < out.length; y += 256, at += 210) {
      const d = halfAt(src, at + 208);
      for (let group = 0; group < 16; group++) {
        const scale = d * ((src[at + 192 + group]! << 24) >> 24);
        const run = (group >> 1) & 3;
        const low = at + (group >> 3) * 64 + (run & 1) * 32 + (group & 1) * 16;
        const lowShift = (run >> 1) * 4;
        const high = at + 128 + (group >> 3) * 32 + (group & 1) * 16;
        const highShift = run * 2;
        const to = y + group * 16;
        for (let j = 0; j < 16; j++) {
          const q = ((src[low + j]! >> lowShift) & 15) | (((src[high + j]! >> highShift) & 3) << 4);
          out[to + j] = scale * (q - 32);
        }
      }
    }
  },
};
