/**
 * Q4_0: 32 weights per block, f16 scale d then 16 bytes of 4-bit q: low nibbles are weights 0–15, high ones 16–31.
 * w = d · (q − 8)
 */
import { halfAt } from "../half.ts";
import { byBlocks, extreme, putHalf } from "./blocks.ts";

export const q4_0 = byBlocks({
  name: "q4_0",
  ggmlType: 2,
  blockLen: 32,
  blockBytes: 18,
  unpack(src, at, out, y) {
    const d = halfAt(src, at);
    for (let j = 0; j < 16; j++) {
      const q = src[at + 2 + j]!;
      out[y + j] = d * ((q & 15) - 8);
      out[y + j + 16] = d * ((q >> 4) - 8);
    }
  },
  /** `quantize_row_q4_0_ref`: the weight of largest size becomes −8 · d. */
  pack(src, x, out, at) {
    const d = Math.fround(extreme(src, x, 32) / -8);
    const inverse = d === 0 ? 0 : Math.fround(1 / d);
    putHalf(out, at, d);
    for (let j = 0; j < 16; j++) {
      const low = Math.min(15, Math.fround(Math.fround(src[x + j]! * inverse) + 8.5));
      const high = Math.min(15, Math.fround(Math.fround(src[x + j + 16]! * inverse) + 8.5));
      out[at + 2 + j] = low | (high << 4);
    }
  },
});
