/** Block types against their formulas on random bits, and the registry. */
import { describe, expect, test } from "bun:test";
import { quantOf, quants, unsupportedQuant } from "../../../../src/engine/formats/quant/index.ts";
import { formulas } from "./formula.ts";

const SEED = 20_261_121;
const BLOCKS = 64;

describe("dequantize", () => {
  for (const quant of Object.values(quants)) {
    test(`${quant.name}: random blocks give the formula's values, rounded as ggml does (seed ${SEED})`, () => {
      const src = randomBytes(BLOCKS * quant.blockBytes, SEED + quant.ggmlType);
      const out = new Float32Array(BLOCKS * quant.blockLen);
      quant.dequantize(src, out);
      const wrong = out.findIndex((weight, i) => !Object.is(weight, expected(i)));
      if (wrong >= 0) throw new Error(`weight ${wrong}: expected ${expected(wrong)}, got ${out[wrong]}`);

      function expected(i: number): number {
        const block = Math.floor(i / quant.blockLen);
        const bytes = src.slice(block * quant.blockBytes, (block + 1) * quant.blockBytes);
        return formulas[quant.name]!(bytes, i % quant.blockLen);
      }
    });

    test(`${quant.name}: the output's length sets how many blocks are read`, () => {
      const src = randomBytes(3 * quant.blockBytes, SEED);
      const all = new Float32Array(3 * quant.blockLen);
      const first = new Float32Array(quant.blockLen);
      quant.dequantize(src, all);
      quant.dequantize(src, first);
      expect(first).toEqual(all.slice(0, quant.blockLen));
      expect(() => quant.dequantize(src.subarray(1), all)).toThrow("invariant");
      const inside = new Float32Array(3 * quant.blockLen);
      quant.dequantize(src, inside.subarray(quant.blockLen, 2 * quant.blockLen));
      expect(inside.slice(0, quant.blockLen)).toEqual(new Float32Array(quant.blockLen));
      expect(inside.slice(quant.blockLen, 2 * quant.blockLen)).toEqual(first);
    });
  }
});

test("ids and sizes equal ggml's", () => {
  const rows = Object.values(quants).map((quant) => [quant.name, quant.ggmlType, quant.blockLen, quant.blockBytes]);
  // GGML_QUANT_SIZES and GGMLQuantizationType in gguf-py's constants.py.
  expect(rows).toEqual([
    ["f32", 0, 1, 4],
    ["f16", 1, 1, 2],
    ["bf16", 30, 1, 2],
    ["q4_0", 2, 32, 18],
    ["q4_1", 3, 32, 20],
    ["q5_0", 6, 32, 22],
    ["q5_1", 7, 32, 24],
    ["q8_0", 8, 32, 34],
    ["q2_K", 10, 256, 84],
    ["q3_K", 11, 256, 110],
    ["q4_K", 12, 256, 144],
    ["q5_K", 13, 256, 176],
    ["q6_K", 14, 256, 210],
    ["iq1_s", 19, 256, 50],
    ["iq1_m", 29, 256, 56],
    ["iq2_xxs", 16, 256, 66],
    ["iq2_xs", 17, 256, 74],
    ["iq2_s", 22, 256, 82],
    ["iq3_xxs", 18, 256, 98],
    ["iq3_s", 21, 256, 110],
    ["iq4_nl", 20, 32, 18],
    ["iq4_xs", 23, 256, 136],
    ["mxfp4", 39, 32, 17],
    ["nvfp4", 40, 64, 36],
    ["tq1_0", 34, 256, 54],
    ["tq2_0", 35, 256, 66],
    ["q1_0", 41, 128, 18],
    ["q2_0", 42, 64, 18],
  ]);
});

test("a block type is found by ggml's id, and has ggml's name", () => {
  expect(quantOf(8)).toBe(quants.q8_0);
  expect(quantOf(39)).toBe(quants.mxfp4);
  expect(quantOf(9)).toBeUndefined();
  for (const [name, quant] of Object.entries(quants)) {
    expect(quant.name).toBe(name);
    expect(quantOf(quant.ggmlType)).toBe(quant);
  }
});

test("an unsupported block type is an error that names it and the supported ones", () => {
  expect(unsupportedQuant(9)).toStartWith("block type q8_1 (9) is not supported; supported: f32, f16, bf16, q4_0,");
  expect(unsupportedQuant(999)).toStartWith("block type 999 is not known; supported: f32,");
});

/** Numerical Recipes' 32-bit generator, upper bytes. */
function randomBytes(length: number, seed: number): Uint8Array {
  let state = seed >>> 0;
  return Uint8Array.from({ length }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state >>> 24;
  });
}
