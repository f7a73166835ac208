/**
 * Q4_K: 256 weights per block in 8 groups of 32. f16 d, f16 dmin, 12 bytes of 6-bit scales s and minimums m, 128 bytes
 * of 4-bit q: 32 bytes per two groups, low nibbles the first.
 * w = d · s · q − dmin · m
 */
import { halfAt } from "../half.ts";
import { byBlocks, minK4, putNibbles, putScalesK4, putU16, scaleK4 } from "./blocks.ts";
import { fitMinBlock, makeMinBlock, type MinSearch } from "./fit.ts";

const SEARCH: MinSearch = { len: 32, max: 15, from: -1, steps: 20, absolute: false, scaleMax: 63 };

export const q4_K = byBlocks({
  name: "q4_K",
  ggmlType: 12,
  blockLen: 256,
  blockBytes: 144,
  unpack(src, at, out, y) {
    const d = halfAt(src, at);
    const dmin = halfAt(src, at + 2);
    for (let group = 0; group < 8; group++) {
      const scale = d * scaleK4(src, at + 4, group);
      const min = dmin * minK4(src, at + 4, group);
      const from = at + 16 + (group >> 1) * 32;
      const shift = (group & 1) * 4;
      const to = y + group * 32;
      for (let j = 0; j < 32; j++) out[to + j] = scale * ((src[from + j]! >> shift) & 15) - min;
    }
  },
  /** `quantize_row_q4_K_ref` */
  pack(src, x, out, at) {
    const block = makeMinBlock(SEARCH);
    fitMinBlock(src, x, SEARCH, block);
    putU16(out, at, block.d);
    putU16(out, at + 2, block.dmin);
    putScalesK4(block.scales, block.mins, out, at + 4);
    putNibbles(block.levels, out, at + 16);
  },
});
