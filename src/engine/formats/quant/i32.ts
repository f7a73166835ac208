/** Whole numbers, for tables. A weight never has this type, and no kernel reads it. */
import type { Quant } from "./quant.ts";

export const i32: Quant = {
  name: "i32",
  ggmlType: 26,
  blockLen: 1,
  blockBytes: 4,
  unreadable: "expected weights, got whole numbers of type i32 (26)",
  dequantize(src, out) {
    const view = new DataView(src.buffer, src.byteOffset, src.byteLength);
    for (let i = 0; i < out.length; i++) out[i] = view.getInt32(4 * i, true);
  },
};
