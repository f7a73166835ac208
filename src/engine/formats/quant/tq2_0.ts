/**
 * TQ2_0: 256 weights of −1, 0 and 1 (and 2, which ggml never writes) per block. 64 bytes of 2-bit q laid out as in
 * Q2_K, then f16 d.
 * w = d · (q − 1)
 */
import { halfAt } from "../half.ts";
import { byBlocks } from "./blocks.ts";

export const tq2_0 = byBlocks({
  name: "tq2_0",
  ggmlType: 35,
  blockLen: 256,
  blockBytes: 66,
  unpack(src, at, out, y) {
    const d = halfAt(src, at + 64);
    for (let run = 0; run < 8; run++) {
      const from = at + (run >> 2) * 32;
      const shift = (run & 3) * 2;
      const to = y + run * 32;
      for (let j = 0; j < 32; j++) out[to + j] = (((src[from + j]! >> shift) & 3) - 1) * d;
    }
  },
});
