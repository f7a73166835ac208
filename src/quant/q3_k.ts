/**
 * Q3_K: 256 weights per block in 16 groups of 16. 32 bytes of high bits h (bit i of byte l is weight 32·i + l), 64
 * bytes of low 2-bit q laid out as in Q2_K, 12 bytes of 6-bit group scales s, f16 d.
 * w = d · (s − 32) · (q + 4·h − 4)
 */
import { halfAt } from "../base/half.ts";
import { checkBlocks } from "./blocks.ts";
import type { Quant } from "./quant.ts";

/** Scale of a group: low 4 bits from bytes 0–7 (one nibble each), high 2 bits from bytes 8–11 (four groups each). */
function scaleOf(src: Uint8Array, at: number, group: number): number {
  const low = group < 8 ? src[at + group]! & 15 : src[at + group - 8]! >> 4;
  const high = (src[at + 8 + (group & 3)]! >> (2 * (group >> 2))) & 3;
  return low | (high << 4);
}

export const q3_K: Quant = {
  name: "q3_K",
  ggmlType: 11,
  blockLen: 256,
  blockBytes: 110,
  dequantize(src, out) {
    checkBlocks(q3_K, src, out);
    for (let y = 0, at = 0; y < out.length; y += 256, at += 110) {
      const d = halfAt(src, at + 108);
      for (let group = 0; group < 16; group++) {
        const scale = d * (scaleOf(src, at + 96, group) - 32);
        const half = (group & 1) * 16;
        const from = at + 32 + (group >> 3) * 32 + half;
        const shift = ((group >> 1) & 3) * 2;
        const bit = group >> 1;
        const to = y + group * 16;
        for (let j = 0; j < 16; j++) {
          const high = (src[at + half + j]! >> bit) & 1;
          out[to + j] = scale * (((src[from + j]! >> shift) & 3) + 4 * high - 4);
        }
      }
    }
  },
};
