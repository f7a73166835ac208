/**
 * Q6_K: 256 weights per block in 16 groups of 16. 128 bytes of low nibbles, 64 bytes of high 2-bit pairs, 16 × i8 group
 * scales s, f16 d. Each half of the block (64 low bytes, 32 high bytes) holds 128 weights as four runs of 32: run r
 * takes the low bytes of 32·(r mod 2), its nibble r div 2, and bits 2r and 2r+1 of the high bytes.
 * w = d · s · (q − 32)
 */
import { halfAt } from "../half.ts";
import { byBlocks, extreme, putHalf } from "./blocks.ts";
import { fitScale, nearestWithin, ZERO } from "./fit.ts";

export const q6_K = byBlocks({
  name: "q6_K",
  ggmlType: 14,
  blockLen: 256,
  blockBytes: 210,
  unpack(src, at, out, y) {
    const d = halfAt(src, at + 208);
    for (let group = 0; group < 16; group++) {
      const scale = d * ((src[at + 192 + group]! << 24) >> 24);
      const run = (group >> 1) & 3;
      const low = at + (group >> 3) * 64 + (run & 1) * 32 + (group & 1) * 16;
      const lowShift = (run >> 1) * 4;
      const high = at + 128 + (group >> 3) * 32 + (group & 1) * 16;
      const highShift = run * 2;
      const to = y + group * 16;
      for (let j = 0; j < 16; j++) {
        const q = ((src[low + j]! >> lowShift) & 15) | (((src[high + j]! >> highShift) & 3) << 4);
        out[to + j] = scale * (q - 32);
      }
    }
  },
  /** `quantize_row_q6_K_ref` */
  pack(src, x, out, at) {
    const levels = new Uint8Array(256);
    const scales = new Float32Array(16);
    for (let group = 0; group < 16; group++) scales[group] = fitScale(src, x + group * 16, levels, group * 16);
    const largest = extreme(scales, 0, 16);
    if (Math.abs(largest) < ZERO) {
      out.fill(0, at, at + 210);
      return;
    }
    const perScale = Math.fround(-128 / largest);
    putHalf(out, at + 208, Math.fround(1 / perScale));
    const d = halfAt(out, at + 208);
    for (let group = 0; group < 16; group++) {
      const s = nearestWithin(Math.fround(perScale * scales[group]!), -128, 127);
      out[at + 192 + group] = s;
      const scale = d * s;
      if (scale === 0) continue; // ggml keeps the levels of the search
      for (let j = group * 16; j < group * 16 + 16; j++) {
        levels[j] = 32 + nearestWithin(Math.fround(src[x + j]! / scale), -32, 31);
      }
    }
    putLevels(levels, out, at);
  },
});

/** Packs the low nibbles and the high pairs of 256 levels, in the layout above. */
function putLevels(levels: Uint8Array, out: Uint8Array, at: number): void {
  for (let half = 0; half < 2; half++) {
    const low = at + half * 64;
    const high = at + 128 + half * 32;
    for (let j = 0; j < 32; j++) {
      const a = levels[half * 128 + j]!;
      const b = levels[half * 128 + 32 + j]!;
      const c = levels[half * 128 + 64 + j]!;
      const d = levels[half * 128 + 96 + j]!;
      out[low + j] = (a & 15) | ((c & 15) << 4);
      out[low + 32 + j] = (b & 15) | ((d & 15) << 4);
      out[high + j] = (a >> 4) | ((b >> 4) << 2) | ((c >> 4) << 4) | ((d >> 4) << 6);
    }
  }
}
