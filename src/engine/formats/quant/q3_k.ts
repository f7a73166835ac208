/**
 * Q3_K: 256 weights per block in 16 groups of 16. 32 bytes of high bits h (bit i of byte l is weight 32·i + l), 64
 * bytes of low 2-bit q laid out as in Q2_K, 12 bytes of 6-bit group scales s, f16 d.
 * w = d · (s − 32) · (q + 4·h − 4)
 */
import { halfAt } from "../half.ts";
import { byBlocks, extreme, putHalf, putPairs } from "./blocks.ts";
import { fitScaleBySteps, nearestWithin } from "./fit.ts";

/** Scale of a group: low 4 bits from bytes 0–7 (one nibble each), high 2 bits from bytes 8–11 (four groups each). */
function scaleOf(src: Uint8Array, at: number, group: number): number {
  const low = group < 8 ? src[at + group]! & 15 : src[at + group - 8]! >> 4;
  const high = (src[at + 8 + (group & 3)]! >> (2 * (group >> 2))) & 3;
  return low | (high << 4);
}

export const q3_K = byBlocks({
  name: "q3_K",
  ggmlType: 11,
  blockLen: 256,
  blockBytes: 110,
  unpack(src, at, out, y) {
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
  },
  /** `quantize_row_q3_K_ref` */
  pack(src, x, out, at) {
    const levels = new Uint8Array(256);
    const scales = new Float32Array(16);
    for (let group = 0; group < 16; group++) {
      scales[group] = fitScaleBySteps(src, x + group * 16, levels, group * 16);
    }
    const perScale = extreme(scales, 0, 16) === 0 ? 0 : Math.fround(-32 / extreme(scales, 0, 16));
    putHalf(out, at + 108, perScale === 0 ? 0 : Math.fround(1 / perScale));
    const d = halfAt(out, at + 108);
    out.fill(0, at + 96, at + 108);
    for (let group = 0; group < 16; group++) {
      // Keeps 0 for a block of zeros, in which s = 0 would be 32.
      const s = perScale === 0 ? 0 : 32 + nearestWithin(Math.fround(perScale * scales[group]!), -32, 31);
      out[at + 96 + (group & 7)]! |= (s & 15) << (group < 8 ? 0 : 4);
      out[at + 104 + (group & 3)]! |= (s >> 4) << (2 * (group >> 2));
      const scale = d * (s - 32);
      if (scale === 0) continue; // ggml keeps the levels of the search
      for (let j = group * 16; j < group * 16 + 16; j++) {
        levels[j] = 4 + nearestWithin(Math.fround(src[x + j]! / scale), -4, 3);
      }
    }
    for (let j = 0; j < 32; j++) {
      let high = 0;
      for (let run = 0; run < 8; run++) high |= (levels[run * 32 + j]! >> 2) << run;
      out[at + j] = high;
    }
    putPairs(levels, out, at + 32);
  },
});
