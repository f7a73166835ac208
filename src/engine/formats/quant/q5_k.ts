/**
 * Q5_K: Q4_K with a fifth bit h: f16 d, f16 dmin, 12 bytes of scales and minimums, 32 bytes of high bits (bit g of byte
 * l is weight l of group g), 128 bytes of low nibbles.
 * w = d · s · (q + 16·h) − dmin · m
 */
import { halfAt } from "../half.ts";
import { byBlocks, minK4, putNibbles, putScalesK4, putU16, scaleK4 } from "./blocks.ts";
import { fitMinBlock, makeMinBlock, type MinSearch } from "./fit.ts";

const SEARCH: MinSearch = { len: 32, max: 31, from: -0.5, steps: 15, absolute: false, scaleMax: 63 };

export const q5_K = byBlocks({
  name: "q5_K",
  ggmlType: 13,
  blockLen: 256,
  blockBytes: 176,
  unpack(src, at, out, y) {
    const d = halfAt(src, at);
    const dmin = halfAt(src, at + 2);
    for (let group = 0; group < 8; group++) {
      const scale = d * scaleK4(src, at + 4, group);
      const min = dmin * minK4(src, at + 4, group);
      const from = at + 48 + (group >> 1) * 32;
      const shift = (group & 1) * 4;
      const to = y + group * 32;
      for (let j = 0; j < 32; j++) {
        const high = (src[at + 16 + j]! >> group) & 1;
        out[to + j] = scale * (((src[from + j]! >> shift) & 15) | (high << 4)) - min;
      }
    }
  },
  /** `quantize_row_q5_K_ref` */
  pack(src, x, out, at) {
    const block = makeMinBlock(SEARCH);
    fitMinBlock(src, x, SEARCH, block);
    putU16(out, at, block.d);
    putU16(out, at + 2, block.dmin);
    putScalesK4(block.scales, block.mins, out, at + 4);
    const { levels } = block;
    for (let j = 0; j < 32; j++) {
      let high = 0;
      for (let group = 0; group < 8; group++) high |= (levels[group * 32 + j]! >> 4) << group;
      out[at + 16 + j] = high;
    }
    putNibbles(levels, out, at + 48);
  },
});
