/**
 * IQ4_NL: 32 weights per block, laid out as Q4_0, but q picks one of 16 unevenly spaced values.
 * w = d · LEVELS[q]
 */
import { halfAt } from "../half.ts";
import { byBlocks } from "./blocks.ts";

/** `kvalues_iq4nl`, ggml-common.h. Also the levels of IQ4_XS. */
export const IQ4_LEVELS = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113] as const;

export const iq4_nl = byBlocks({
  name: "iq4_nl",
  ggmlType: 20,
  blockLen: 32,
  blockBytes: 18,
  unpack(src, at, out, y) {
    const d = halfAt(src, at);
    for (let j = 0; j < 16; j++) {
      const q = src[at + 2 + j]!;
      out[y + j] = d * IQ4_LEVELS[q & 15]!;
      out[y + j + 16] = d * IQ4_LEVELS[q >> 4]!;
    }
  },
});
