/** BF16: the upper half of a float32, little-endian. */
import { checkBlocks } from "./blocks.ts";
import type { Quant } from "./quant.ts";

export const bf16: Quant = {
  name: "bf16",
  ggmlType: 30,
  blockLen: 1,
  blockBytes: 2,
  dequantize(src, out) {
    checkBlocks(bf16, src, out);
    const bits = new Uint32Array(out.buffer, out.byteOffset, out.length);
    for (let i = 0; i < bits.length; i++) bits[i] = (src[2 * i]! << 16) | (src[2 * i + 1]! << 24);
  },
};
