/** F32: plain little-endian float32. */
import { checkBlocks } from "./blocks.ts";
import type { Quant } from "./quant.ts";

export const f32: Quant = {
  name: "f32",
  ggmlType: 0,
  blockLen: 1,
  blockBytes: 4,
  dequantize(src, out) {
    checkBlocks(f32, src, out);
    const bytes = out.length * 4;
    new Uint8Array(out.buffer, out.byteOffset, bytes).set(src.subarray(0, bytes));
  },
  quantize(src, out) {
    checkBlocks(f32, out, src);
    out.set(new Uint8Array(src.buffer, src.byteOffset, src.byteLength));
  },
};
