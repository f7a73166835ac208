/**
 * IQ2_S: 256 weights per block in 16 groups of 16. f16 d, 32 bytes that pick grid points of 8 weights (low 8 bits), 32
 * bytes of signs, 8 bytes with the high 2 bits of the picks, 8 bytes of 4-bit scales s, low nibbles first.
 * w = d · (s + ½) / 4 · point · sign
 */
import { halfAt } from "../half.ts";
import { checkBlocks } from "./blocks.ts";
import { THREE_LEVELS, unpackGrid } from "./grid.ts";
import type { Quant } from "./quant.ts";

/** `iq2s_grid`, ggml-common.h. */
export const IQ2_S_GRID = unpackGrid(
  { width: 8, levels: THREE_LEVELS },
  "VVVVUVVFVRUFEVVVUVBFVRQFFRRUURBQVQQAEREQUFVFVVVVFVRFUVBVVRRVVRRUURBAVQQAURQEUBAAQBVVEVVVURABAUAFVQREURBAQAAAARQQ" +
    "BRAAAABAAFRVUVFFVRUVURRUVVVFVRUFVRQAUBRBQQQFABQEAFBFVRRVVRRUURBAVRUFVRQEUBAAQBQFARQEABAAAEBVUQRUURBAAQAAVRQEUBAA" +
    "EAAABBAEABAABAAAAABUURVRQQUEAREAVFBBQAUFARQEABAQAFEEAQAABQBEVRQFVRQEUBAAQBQFARQEABEAAAAFAQAEAAQAAAAAERQAUBAAAEAA" +
    "ABUEAAAAAAAAEAAABEAAAAAEQAEAUFVVRVVVFRREUVBFVQVVVRRUURBAQRUEURQEUAAAQFVVVVRVUVBFQQBVVRRUURBQQQAAVRQEUBAAQAAAEBRV" +
    "UVBFQQAEAQBUURBAQQAAAUAAUBAAQAAAAAAAAFBFVRVVVRRUUQBAVRUFVRQEUBAAQBQFARQEABQAAABVVRRUURBAQQAAVRQEUBAAQAAAABQEABEA" +
    "AAAAAABUURBAQUAAAQAAUBAAQAAAAAAAABAAEAAAAABAAABERRUFURQEQBAAQBUFARQEABAAEAAEAQAEAAEAAAABURQEUBAAQAAAABQEABAQABAA" +
    "BAAEAAAAAAAAABAAUBAAAAAAEAAAARAAAEAAAAAAAAAAAAAABAAAAABAQBVFERRUERBBAQBFVRRUUQBAQQBAERUAUBAAAAAAAFRVEVBFQQAFAQBU" +
    "URBAQQAAAQEAUBAAUAAAAAAAABBBAQAFAQAAAEBAAQAAAQBAAAAAAAAABAAABUAAAAFFVRBUURBAQQAAERQAUBAQAAAAABQEABAAAAAAAEBUURBA" +
    "QQAAAUAAUBAAQAAAAAAAERAAAAAQABAAAABAQQAQAQAAAAAAUAAAAAARAAAAAAAAAAAAAAAAQAAAEREQVBAAAAAABAEAABAAAAQAAAAQBEAUAAAA" +
    "RAEAURAAQAAAAAABQBAAEAAAAAAAAAAAAAAAAAQAAAAAAEAAQAAAAAAAAAEAAAAAQAAABAAAQAEUAQAAABAAAAE",
);

export const iq2_s: Quant = {
  name: "iq2_s",
  ggmlType: 22,
  blockLen: 256,
  blockBytes: 82,
  grid: IQ2_S_GRID,
  dequantize(src, out) {
    checkBlocks(iq2_s, src, out);
    for (let y = 0, at = 0; y < out.length; y += 256, at += 82) {
      const d = halfAt(src, at);
      for (let part = 0; part < 32; part++) {
        const s = (src[at + 74 + (part >> 2)]! >> (4 * ((part >> 1) & 1))) & 15;
        const scale = d * (0.5 + s) * 0.25;
        const high = (src[at + 66 + (part >> 2)]! >> (2 * (part & 3))) & 3;
        const point = (src[at + 2 + part]! | (high << 8)) * 8;
        const signs = src[at + 34 + part]!;
        const to = y + part * 8;
        for (let j = 0; j < 8; j++) {
          const weight = scale * IQ2_S_GRID[point + j]!;
          out[to + j] = (signs >> j) & 1 ? -weight : weight;
        }
      }
    }
  },
};
