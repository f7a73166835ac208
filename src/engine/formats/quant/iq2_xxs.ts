/**
 * IQ2_XXS: 256 weights per block in 8 groups of 32. f16 d, then per group 4 bytes that pick grid points of 8 weights
 * and a word: 4 × 7 bits of signs, 4 bits of scale s.
 * w = d · (s + ½) / 4 · point · sign
 */
import { halfAt } from "../half.ts";
import { checkBlocks } from "./blocks.ts";
import { evenSigns, THREE_LEVELS, unpackGrid, wordAt } from "./grid.ts";
import type { Quant } from "./quant.ts";

/** `iq2xxs_grid`, ggml-common.h. */
export const IQ2_XXS_GRID = unpackGrid(
  { width: 8, levels: THREE_LEVELS },
  "VRUUVRBEQUEABBREABAAAAAEQAAUAEAAAAAABAAAUBBAQREAARQEQFAEQAAQAAAFEAAAUAAAAQAAQAAAQRQEQBQUAAAEAAAEAAAEAAAAAAAABBAA" +
    "AAAAAAAAABQEEBAAQAAEEQAEARAAQEAAAQAAAAAAAQQAAAAAABAEQARAAAAEAAAAABAAAAAQAAAAQAAQAAAAAAAAAAAFAQAEAABAAAAAEQAAAAAA" +
    "AAAAAQAAAABAAAAAAAAUBAAAAQABBQAAAAAAEBAAAAAAAFAAAAAAAAAAAABAQQAAAUAAAAAAQAAAAAQAQAAAAAAAAAAAAAAAQAAAQAAEAAAAAAAE" +
    "AAAAAAAAAAAAAAAAAAAAAQAAAAAAUBBEQRAQARQEABAAQAAAAAREAABAQAAAQEAAAQAAQBAAAQAAABAAEAAABBAAAAAAAAAAAQAAAAAAAAAAABQE" +
    "ABABAAAAAAAEAAAAABABBAAAAAAAAAQAAAAEABBEUAAAAAAEAQAAAQAABAAAAAAAAQAAAAAAAABAAAAAAAAAAAAAQAEAAAEAAAAAAAAAAAQAAAAA" +
    "AQAAAAAEEAQAAAAEAAAAAAAAQAAAAAAAAAAEAAAAAAAAAAAAQQAAAQAAAQAAQAAAAABAAAAAAAAAQAAAABAAAAAAEQAAAAAAAAAAAAAUAAAAAAAE" +
    "AAAAAAAAAAAAAAAAAAAAAAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAQEEAAAQAAEAAAAAEQAAEAAAAAAAAAAQAAAAAAAAAABREABAAQAAAAAAE" +
    "AAAABAAAABAAAAQAQAAAAQAAAEAAAAAAAAAAAAAAAQAAAAAAAAAAAAABAAAAAAAAAAAEARAEAAAAAAABAEAAAAAAQAAAAAAAAAABAAAAAAAEAEAA" +
    "AQAAAAAAAAAAAAABAAAAAAAAAAAAAAAAAAAAAAAAAAAAEAAAAAAAAQAAAAAAAAAAAAAAAAAAAAAABAAAABAAAAQAAAABAAAAAAAAAAAEAAAAAAAA" +
    "AAAAAAAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEAAAAAAAEAAAAAAAAAAAAAAAAAAAAAAAAAAA",
);

export const iq2_xxs: Quant = {
  name: "iq2_xxs",
  ggmlType: 16,
  blockLen: 256,
  blockBytes: 66,
  grid: IQ2_XXS_GRID,
  dequantize(src, out) {
    checkBlocks(iq2_xxs, src, out);
    for (let y = 0, at = 0; y < out.length; y += 256, at += 66) {
      const d = halfAt(src, at);
      for (let group = 0; group < 8; group++) {
        const from = at + 2 + group * 8;
        const word = wordAt(src, from + 4);
        const scale = d * (0.5 + (word >>> 28)) * 0.25;
        for (let part = 0; part < 4; part++) {
          const point = src[from + part]! * 8;
          const signs = evenSigns((word >>> (7 * part)) & 127);
          const to = y + group * 32 + part * 8;
          for (let j = 0; j < 8; j++) {
            const weight = scale * IQ2_XXS_GRID[point + j]!;
            out[to + j] = (signs >> j) & 1 ? -weight : weight;
          }
        }
      }
    }
  },
};
