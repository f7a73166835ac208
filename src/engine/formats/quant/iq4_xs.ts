/**
 * IQ4_XS: 256 weights per block in 8 groups of 32. f16 d, 2 bytes with the high 2 bits of each group scale s, 4 bytes
 * with its low nibbles, then 16 bytes of q per group as in IQ4_NL.
 * w = d · (s − 32) · LEVELS[q]
 */
import { halfAt } from "../half.ts";
import { byBlocks } from "./blocks.ts";
import { IQ4_LEVELS } from "./iq4_nl.ts";

export const iq4_xs = byBlocks({
  name: "iq4_xs",
  ggmlType: 23,
  blockLen: 256,
  blockBytes: 136,
  unpack(src, at, out, y) {
    const d = halfAt(src, at);
    const highs = src[at + 2]! | (src[at + 3]! << 8);
    for (let group = 0; group < 8; group++) {
      const low = (src[at + 4 + (group >> 1)]! >> (4 * (group & 1))) & 15;
      const high = (highs >> (2 * group)) & 3;
      const scale = d * ((low | (high << 4)) - 32);
      const from = at + 8 + group * 16;
      const to = y + group * 32;
      for (let j = 0; j < 16; j++) {
        const q = src[from + j]!;
        out[to + j] = scale * IQ4_LEVELS[q & 15]!;
        out[to + j + 16] = scale * IQ4_LEVELS[q >> 4]!;
      }
    }
  },
});
