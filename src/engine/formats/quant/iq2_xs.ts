/**
 * IQ2_XS: 256 weights per block in 16 groups of 16. f16 d, 32 × u16 that pick grid points of 8 weights (9 bits) and
 * their signs (7 bits), 8 bytes of 4-bit scales s, low nibbles first.
 * w = d · (s + ½) / 4 · point · sign
 */
import { halfAt } from "../half.ts";
import { checkBlocks } from "./blocks.ts";
import { evenSigns, THREE_LEVELS, unpackGrid } from "./grid.ts";
import type { Quant } from "./quant.ts";

/** `iq2xs_grid`, ggml-common.h. */
export const IQ2_XS_GRID = unpackGrid(
  { width: 8, levels: THREE_LEVELS },
  "VVVVUVVFQRVFAVRVVVBFQRAFAQBUURBAQQQAAQEAUFVFQRUVARQEAFBFQQAFAQQEAABAQQAQBQAAQAAAQFUFERQEARAAQEAFAQAEAABAEAAAAQAE" +
    "AQAAAAAQAVRVUVBFQUAFAQBUURBAQQAAAVAAUBEAQAAAAQAAAFBFQQBFARAEAABAQQAAAQAAAAAAQAAEAAABAAAAAAAFBQAEQAAABAAAEQAAAAAA" +
    "BAAAAAAAAABAAAAAAABVVRBAQQAAAQAEUBAAQBAAEAAAABAAAAEAAAAEAABEQQBAAQAAAAAAQAAAAAQQAAAAEAABAAEAAAAAAAAQQQEEAAABABAA" +
    "BAAAAAAAABAAAQAAARAAAAAARAEAUFVFQVUFERQEAFBFQQAFAQBEAEBAQQFAAQAAAAAAQBVFARQEABAAAQAFARAEAAAAAEAAAQEAQBAAAAAAABQE" +
    "ABABAQEAAAAEEAAAQQBAAAAAQAAAAAAAAAAAAFBFQRAFAQAEAABAQQQABQAAAAAAQAAAABAAAAAAAEAFAQQEABBAAAABQQAAAAAAQBAAAAAAEAAA" +
    "ABAAAAQEQABAQAAAAAABAAAQQAEAAAAAAAAAAAAAAABAAABAQQAAARAQAAEAUAAAAAAAAAAAAAAAABAABAAAAAEAAUAAAAAAAAAAAAAEABABAAAA" +
    "ABAAAAAAAAAAAAAAEAAAAAAAAAEAAAAAAAQAAAAAAAAABAAAABAQAAAAQBUFARUEAFAAAFAVAQAEEAQAAAAAAQAEAAAAQAEAQRRUABAAQABAAAAE" +
    "AAAAAQAAAABAAAAEAAAAAAEAABAEAAQAAAEUAAAEBAAAAAAAAAAAAAAABAAAABAEBBAFAQAEAAEAAQAAAQAQAAAAAQAAAAAAAAAABABAAABEAAAA" +
    "QRAAAAAAAAAAEAAAAAAUAAAAAAABAAAAAAAAAAAAAAQAAAAABAAAAAABAAAAAAAAEAAAABAAAAAARQEEBAAAAAAAAQAAAABAEAAAAEAUAQAQAAAA" +
    "AQAEAAAAQAAAAABAAAAAAAAAAAAAAAAAAAAAAABAAAAEAEAARQAAAAAAQBAEAAAAAAAABQAAAAAABQAAAAABAAE",
);

export const iq2_xs: Quant = {
  name: "iq2_xs",
  ggmlType: 17,
  blockLen: 256,
  blockBytes: 74,
  grid: IQ2_XS_GRID,
  dequantize(src, out) {
    checkBlocks(iq2_xs, src, out);
    for (let y = 0, at = 0; y < out.length; y += 256, at += 74) {
      const d = halfAt(src, at);
      for (let part = 0; part < 32; part++) {
        const s = (src[at + 66 + (part >> 2)]! >> (4 * ((part >> 1) & 1))) & 15;
        const scale = d * (0.5 + s) * 0.25;
        const q = src[at + 2 + part * 2]! | (src[at + 3 + part * 2]! << 8);
        const point = (q & 511) * 8;
        const signs = evenSigns(q >> 9);
        const to = y + part * 8;
        for (let j = 0; j < 8; j++) {
          const weight = scale * IQ2_XS_GRID[point + j]!;
          out[to + j] = (signs >> j) & 1 ? -weight : weight;
        }
      }
    }
  },
};
