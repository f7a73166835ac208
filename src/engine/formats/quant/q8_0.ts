/**
 * Q8_0: 32 weights per block, f16 scale d then 32 × i8.
 * w = d · q
 */
import { halfAt } from "../half.ts";
import { checkBlocks, putHalf } from "./blocks.ts";
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
  /** `quantize_row_q8_0_ref`: halves round away from zero. */
  quantize(src, out) {
    checkBlocks(q8_0, out, src);
    for (let x = 0, at = 0; x < src.length; x += 32, at += 34) {
      let size = 0;
      for (let j = x; j < x + 32; j++) if (Math.abs(src[j]!) > size) size = Math.abs(src[j]!);
      const d = Math.fround(size / 127);
      const inverse = d === 0 ? 0 : Math.fround(1 / d);
      putHalf(out, at, d);
      for (let j = 0; j < 32; j++) {
        const scaled = Math.fround(src[x + j]! * inverse);
        out[at + 2 + j] = scaled < 0 ? scaled - 0.5 : scaled + 0.5; // the array drops the fraction
      }
    }
  },
};
