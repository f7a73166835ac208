/**
 * NVFP4: 64 weights per block, four unsigned 8-bit floats (4 bits of exponent, 3 of mantissa) as scales of 16 weights
 * each, then 32 bytes of 4-bit E2M1 floats: in each group of 16, the low nibbles are weights 0–7, the high ones 8–15. w
 * = scale · LEVELS[q] / 2, with levels doubled so that they are integers (`ggml_ue4m3_to_fp32`, `kvalues_mxfp4`). A
 * factor on the whole tensor is a separate tensor, `NAME.scale`.
 */
import { byBlocks } from "./blocks.ts";
import { E2M1_LEVELS } from "./mxfp4.ts";

/** (256) half of each scale. Zero, and the code for NaN, are 0; ggml ignores the sign. */
const HALF_SCALES = Float32Array.from({ length: 256 }, (_, code) => {
  const [exponent, mantissa] = [(code >> 3) & 15, code & 7];
  if (code === 0 || code === 0x7f) return 0;
  return exponent === 0 ? mantissa * 2 ** -10 : (1 + mantissa / 8) * 2 ** (exponent - 8);
});

export const nvfp4 = byBlocks({
  name: "nvfp4",
  ggmlType: 40,
  blockLen: 64,
  blockBytes: 36,
  unpack(src, at, out, y) {
    for (let part = 0; part < 4; part++) {
      const d = HALF_SCALES[src[at + part]!]!;
      const [from, to] = [at + 4 + part * 8, y + part * 16];
      for (let j = 0; j < 8; j++) {
        const q = src[from + j]!;
        out[to + j] = d * E2M1_LEVELS[q & 15]!;
        out[to + j + 8] = d * E2M1_LEVELS[q >> 4]!;
      }
    }
  },
});
