/**
 * TQ1_0: 256 weights of −1, 0 and 1 per block. 48 bytes of 5 weights and 4 bytes of 4 weights, then f16 d. A byte is a
 * fraction of 256 in base 3: times 3, the overflow beyond 256 is the first digit. The digits of 32, 16 and 4 bytes are
 * interleaved: first digits of all, second digits of all, …
 * w = d · (digit − 1)
 */
import { halfAt } from "../half.ts";
import { byBlocks } from "./blocks.ts";

/** Runs of bytes, and the number of their digits. */
const RUNS = [
  { at: 0, length: 32, digits: 5 },
  { at: 32, length: 16, digits: 5 },
  { at: 48, length: 4, digits: 4 },
] as const;

export const tq1_0 = byBlocks({
  name: "tq1_0",
  ggmlType: 34,
  blockLen: 256,
  blockBytes: 54,
  unpack(src, at, out, y) {
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
  },
});
