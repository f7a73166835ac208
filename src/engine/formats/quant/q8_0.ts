/**
 * Q8_0: 32 weights per block, f16 scale d then 32 × i8.
 * w = d · q
 */
import { halfAt } from "../half.ts";
import { byBlocks, putHalf } from "./blocks.ts";

export const q8_0 = byBlocks({
  name: "q8_0",
  ggmlType: 8,
  blockLen: 32,
  blockBytes: 34,
  unpack(src, at, out, y) {
    const d = halfAt(src, at);
    for (let j = 0; j < 32; j++) out[y + j] = d * ((src[at + 2 + j]! << 24) >> 24);
  },
  /** `quantize_row_q8_0_ref`: halves round away from zero. */
  pack(src, x, out, at) {
    let size = 0;
    for (let j = x; j < x + 32; j++) if (Math.abs(src[j]!) > size) size = Math.abs(src[j]!);
    const d = Math.fround(size / 127);
    const inverse = d === 0 ? 0 : Math.fround(1 / d);
    putHalf(out, at, d);
    for (let j = 0; j < 32; j++) {
      const scaled = Math.fround(src[x + j]! * inverse);
      out[at + 2 + j] = scaled < 0 ? scaled - 0.5 : scaled + 0.5; // the array drops the fraction
    }
  },
});
