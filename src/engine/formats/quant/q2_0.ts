/**
 * Q2_0: 64 weights of −1, 0, 1 and 2 per block. f16 d, then 16 bytes of 2-bit q, the lowest bits first.
 * w = d · (q − 1)
 */
import { halfAt } from "../half.ts";
import { byBlocks } from "./blocks.ts";

export const q2_0 = byBlocks({
  name: "q2_0",
  ggmlType: 42,
  blockLen: 64,
  blockBytes: 18,
  unpack(src, at, out, y) {
    const d = halfAt(src, at);
    for (let j = 0; j < 64; j++) out[y + j] = (((src[at + 2 + (j >> 2)]! >> (2 * (j & 3))) & 3) - 1) * d;
  },
});
