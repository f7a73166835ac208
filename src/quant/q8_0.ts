/**
 * Q8_0: 32 weights per block, f16 scale d then 32 × i8.
 * w = d · q
 */
import { halfAt } from "../base/half.ts";
import { checkBlocks } from "./blocks.ts";
import type { Quant } from "./quant.ts";

export const q8_0: Quant = {
  name: "q8_0",
  ggmlType: 8,
  blockLen: 32,
  blockBytes: 34,
  dequantize(src, out) {
    checkBlocks(q8_0, src, out);
    const q = new Int8Array(src.buffer, src.byteOffset, src.length);
    for (let y = 0, at = 0; y < out.length; y += 32, at += 34) {
      const d = halfAt(src, at);
      for (let j = 0; j < 32; j++) out[y + j] = d * q[at + 2 + j]!;
    }
  },
};
