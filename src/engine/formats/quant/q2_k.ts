/**
 * Q2_K: 256 weights per block in 16 groups of 16. 16 bytes of group scale s (low nibble) and minimum m (high nibble),
 * 64 bytes of 2-bit q, f16 d, f16 dmin. Each 32 bytes of q hold 128 weights: bits 0–1 the first 32, bits 2–3 the next
 * 32, …
 * w = d · s · q − dmin · m
 */
import { halfAt } from "../half.ts";
import { byBlocks, putPairs, putU16 } from "./blocks.ts";
import { fitMinBlock, makeMinBlock, type MinSearch } from "./fit.ts";

const SEARCH: MinSearch = { len: 16, max: 3, from: -0.5, steps: 15, absolute: true, scaleMax: 15 };

export const q2_K = byBlocks({
  name: "q2_K",
  ggmlType: 10,
  blockLen: 256,
  blockBytes: 84,
  unpack(src, at, out, y) {
    const d = halfAt(src, at + 80);
    const dmin = halfAt(src, at + 82);
    for (let group = 0; group < 16; group++) {
      const scale = d * (src[at + group]! & 15);
      const min = dmin * (src[at + group]! >> 4);
      const from = at + 16 + (group >> 3) * 32 + (group & 1) * 16;
      const shift = ((group >> 1) & 3) * 2;
      const to = y + group * 16;
      for (let j = 0; j < 16; j++) out[to + j] = scale * ((src[from + j]! >> shift) & 3) - min;
    }
  },
  /** `quantize_row_q2_K_ref` */
  pack(src, x, out, at) {
    const block = makeMinBlock(SEARCH);
    fitMinBlock(src, x, SEARCH, block);
    for (let group = 0; group < 16; group++) out[at + group] = block.scales[group]! | (block.mins[group]! << 4);
    putPairs(block.levels, out, at + 16);
    putU16(out, at + 80, block.d);
    putU16(out, at + 82, block.dmin);
  },
});
