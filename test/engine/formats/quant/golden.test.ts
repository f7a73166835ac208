/** Every block type against ggml's blocks and its own dequantization of them, bit for bit. */
import { describe, expect } from "bun:test";
import { quants } from "../../../../src/engine/formats/quant/index.ts";
import { golden, goldenTest } from "../../../golden.ts";

/** Types without blocks among the reference data; index.test.ts compares them with their formulas. */
const UNRECORDED = ["nvfp4", "q1_0", "q2_0"];

describe("dequantize", () => {
  for (const quant of Object.values(quants)) {
    if (UNRECORDED.includes(quant.name)) continue;
    const file = quant.name === "f32" ? "input.f32" : `${quant.name}.bin`;
    const values = quant.name === "f32" ? "input.f32" : `${quant.name}.f32`;

    goldenTest(`${quant.name} equals ggml to the last bit`, async () => {
      const src = await Bun.file(golden(`quants/${file}`)).bytes();
      const expected = new Uint32Array(await Bun.file(golden(`quants/${values}`)).arrayBuffer());
      expect(src.length).toBe((expected.length / quant.blockLen) * quant.blockBytes);
      expect(differences(src, expected)).toBe("");
      expect(differences(misaligned(src), expected)).toBe("");

      function differences(bytes: Uint8Array, bits: Uint32Array): string {
        const out = new Float32Array(bits.length);
        quant.dequantize(bytes, out);
        const got = new Uint32Array(out.buffer);
        const at = got.findIndex((value, i) => value !== bits[i]);
        return at < 0 ? "" : `weight ${at}: ${out[at]}, ggml has ${new Float32Array(bits.buffer)[at]}`;
      }
    });
  }
});

/** The same bytes at an odd address, and as a Buffer, whose methods differ from a Uint8Array's. */
function misaligned(bytes: Uint8Array): Uint8Array {
  const wide = Buffer.alloc(bytes.length + 3);
  wide.set(bytes, 3);
  return wide.subarray(3);
}
