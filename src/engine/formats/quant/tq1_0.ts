/**
 * TQ1_0: 256 weights of −1, 0 and 1 per block. 48 bytes of 5 weights and 4 bytes of 4 weights, then f16 d. A byte is a
 * fraction of 256 in base 3: times 3, the overflow beyond 256 is the first digit. The digits of 32, 16 and 4 bytes are
 * interleaved: first digits of all, second digits of all, …
 * w = d · (digit − 1)
 */
import { halfAt } from "../half.ts";
import { checkBlocks } from "./blocks.ts";
import type { Quant } from "./quant.ts";

/** Runs of bytes, and their digits. */
const RUNS = [
  { at: 0, length: 32, digits: 5 },
  { at: 32, length: 16, digits: 5 },
  { at: 48, length: 4, digits: 4 },
] as const;

export const tq1_0: Quant = {
  name: "tq1_0",
  ggmlType: 34,
  blockLen: 256,
  blockBytes: 54,
  dequantize(src, out) {
    checkBlocks(tq1_0, src, out);
    for (let y = 0, at = 0; y < out.length; y += 256, at += 54) {
      const d = halfAt(src, at + 52);
      let to = y;
      for (let k = 0; k < RUNS.length; k++) {
        const run = RUNS[k]!;
        for (let digit = 0, power = 1; digit < run.digits; digit++, power *= 3) {
          for (let j = 0; j < run.length; j++) {
            const fraction = (src[at + run.at + j]! * power) & 255;
            out[to++] = (((fraction * 3) >> 8) - 1) * d;
          }
        }
      }
    }
  },
};
