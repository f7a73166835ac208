/**
 * MXFP4 (OCP Microscaling): 32 weights per block, one power-of-two scale as an 8-bit exponent e, then 16 bytes of 4-bit
 * E2M1 floats ordered as in Q4_0.
 * w = 2^(e − 128) · E2M1_LEVELS[q], with levels doubled so that they are integers (`kvalues_mxfp4`,
 * `ggml_e8m0_to_fp32_half`)
 */
import { byBlocks } from "./blocks.ts";

/** `kvalues_mxfp4`, ggml-common.h: twice 0, ½, 1, 1½, 2, 3, 4, 6 and their negatives (−0 becomes 0). */
export const E2M1_LEVELS = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12] as const;

export const mxfp4 = byBlocks({
  name: "mxfp4",
  ggmlType: 39,
  blockLen: 32,
  blockBytes: 17,
  unpack(src, at, out, y) {
    const d = 2 ** (src[at]! - 128);
    for (let j = 0; j < 16; j++) {
      const q = src[at + 1 + j]!;
      out[y + j] = d * E2M1_LEVELS[q & 15]!;
      out[y + j + 16] = d * E2M1_LEVELS[q >> 4]!;
    }
  },
});
