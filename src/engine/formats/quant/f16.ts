/** F16: plain little-endian half floats. */
import { checkBlocks } from "./blocks.ts";
import type { Quant } from "./quant.ts";

export const f16: Quant = {
  name: "f16",
  ggmlType: 1,
  blockLen: 1,
  blockBytes: 2,
  dequantize(src, out) {
    checkBlocks(f16, src, out);
    const aligned = src.byteOffset % 2 === 0 ? src : new Uint8Array(src.subarray(0, out.length * 2));
    out.set(new Float16Array(aligned.buffer, aligned.byteOffset, out.length));
  },
  quantize(src, out) {
    checkBlocks(f16, out, src);
    const halves = new Float16Array(src);
    out.set(new Uint8Array(halves.buffer));
  },
};
