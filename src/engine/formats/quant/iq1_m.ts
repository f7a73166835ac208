/**
 * IQ1_M: 256 weights per block in 16 groups of 16. 32 bytes that pick grid points of 8 weights (low 8 bits), 32 nibbles
 * with 3 high bits of the picks and the sign of the shift, then 4 × u16: 4 × 3 bits of group scale s each, and in the
 * highest 4 bits a quarter of the f16 d, lowest first.
 * w = d · (2·s + 1) · (point ± ⅛)
 */
import { halfToFloat } from "../half.ts";
import { byBlocks } from "./blocks.ts";
import { IQ1_GRID, IQ1_SHIFT } from "./iq1_s.ts";

export const iq1_m = byBlocks({
  name: "iq1_m",
  ggmlType: 29,
  blockLen: 256,
  blockBytes: 56,
  grid: IQ1_GRID,
  unpack(src, at, out, y) {
    let bits = 0;
    for (let k = 0; k < 4; k++) bits |= (src[at + 49 + 2 * k]! >> 4) << (4 * k);
    const d = halfToFloat(bits);
    for (let part = 0; part < 32; part++) {
      const group = part >> 1;
      const scales = src[at + 48 + 2 * (group >> 2)]! | (src[at + 49 + 2 * (group >> 2)]! << 8);
      const scale = d * (2 * ((scales >> (3 * (group & 3))) & 7) + 1);
      const nibble = src[at + 32 + (part >> 1)]! >> (4 * (part & 1));
      const point = (src[at + part]! | ((nibble & 7) << 8)) * 8;
      const shift = nibble & 8 ? -IQ1_SHIFT : IQ1_SHIFT;
      const to = y + part * 8;
      for (let j = 0; j < 8; j++) out[to + j] = scale * (IQ1_GRID[point + j]! + shift);
    }
  },
});
