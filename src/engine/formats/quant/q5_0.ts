/**
 * Q5_0: 32 weights per block, f16 scale d, 4 bytes with the fifth bit of each weight (bit j is weight j), then 16 bytes
 * of low nibbles as in Q4_0.
 * w = d · (q − 16)
 */
import { halfAt } from "../half.ts";
import { byBlocks, extreme, putHalf, putWord } from "./blocks.ts";

export const q5_0 = byBlocks({
  name: "q5_0",
  ggmlType: 6,
  blockLen: 32,
  blockBytes: 22,
  unpack(src, at, out, y) {
    const d = halfAt(src, at);
    const low = src[at + 2]! | (src[at + 3]! << 8);
    const high = src[at + 4]! | (src[at + 5]! << 8);
    for (let j = 0; j < 16; j++) {
      const q = src[at + 6 + j]!;
      out[y + j] = d * (((q & 15) | (((low >> j) & 1) << 4)) - 16);
      out[y + j + 16] = d * (((q >> 4) | (((high >> j) & 1) << 4)) - 16);
    }
  },
  /** `quantize_row_q5_0_ref`: the weight of largest size becomes −16 · d. */
  pack(src, x, out, at) {
    const d = Math.fround(extreme(src, x, 32) / -16);
    const inverse = d === 0 ? 0 : Math.fround(1 / d);
    putHalf(out, at, d);
    let fifths = 0;
    for (let j = 0; j < 16; j++) {
      const low = Math.min(31, Math.fround(Math.fround(src[x + j]! * inverse) + 16.5)) | 0;
      const high = Math.min(31, Math.fround(Math.fround(src[x + j + 16]! * inverse) + 16.5)) | 0;
      out[at + 6 + j] = (low & 15) | (high << 4);
      fifths |= ((low >> 4) << j) | ((high >> 4) << (j + 16));
    }
    putWord(out, at + 2, fifths);
  },
});
