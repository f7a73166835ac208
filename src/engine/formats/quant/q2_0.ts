/**
 * Q2_0: 64 weights of −1, 0, 1 and 2 per block. f16 d, then 16 bytes of 2-bit q, the lowest bits first.
 * w = d · (q − 1)
 */
import { halfAt } from "../half.ts";
import { checkBlocks } from "./blocks.ts";
import type { Quant } from "./quant.ts";

export const q2_0: Quant = {
  name: "q2_0",
  ggmlType: 42,
  blockLen: 64,
  blockBytes: 18,
  dequantize(src, out) {
    checkBlocks(q2_0, src, out);
    for (let y = 0, at = 0; y < out.length; y += 64, at += 18) {
      const d = halfAt(src, at);
      for (let j = 0; j < 64; j++) out[y + j] = (((src[at + 2 + (j >> 2)]! >> (2 * (j & 3))) & 3) - 1) * d;
    }
  },
};
