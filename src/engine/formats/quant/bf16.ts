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
  /** Rounds to nearest, ties to even; NaN stays NaN (`ggml_compute_fp32_to_bf16`). */
  quantize(src, out) {
    checkBlocks(bf16, out, src);
    const bits = new Uint32Array(src.buffer, src.byteOffset, src.length);
    for (let i = 0; i < bits.length; i++) {
      const word = bits[i]!;
      const isNaN = (word & 0x7fffffff) > 0x7f800000;
      const upper = isNaN ? (word >>> 16) | 64 : (word + 0x7fff + ((word >>> 16) & 1)) >>> 16;
      out[2 * i] = upper;
      out[2 * i + 1] = upper >> 8;
    }
  },
};
