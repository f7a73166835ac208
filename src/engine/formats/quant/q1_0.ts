/** Q1_0: 128 weights per block, all of equal magnitude. f16 d, then 16 bytes of signs, the lowest bit first. w = ±d */
import { halfAt } from "../half.ts";
import { byBlocks } from "./blocks.ts";

export const q1_0 = byBlocks({
  name: "q1_0",
  ggmlType: 41,
  blockLen: 128,
  blockBytes: 18,
  unpack(src, at, out, y) {
    const d = halfAt(src, at);
    for (let j = 0; j < 128; j++) out[y + j] = ((src[at + 2 + (j >> 3)]! >> (j & 7)) & 1) === 1 ? d : -d;
  },
});
