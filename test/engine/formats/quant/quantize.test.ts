/** Every quantizer against ggml's blocks of the same weights, and on awkward weights. */
import { describe, expect, test } from "bun:test";
import { quants } from "../../../../src/engine/formats/quant/index.ts";
import type { Quant } from "../../../../src/engine/formats/quant/quant.ts";
import { golden, goldenTest } from "../../../golden.ts";
import { varied } from "./varied.ts";

type Quantizer = Quant & Required<Pick<Quant, "quantize">>;
const canQuantize = (quant: Quant): quant is Quantizer => quant.quantize !== undefined;
const quantizers = Object.values(quants).filter(canQuantize);
const SEED = 20_261_121;

const quantized = (quant: Quantizer, weights: Float32Array): Uint8Array<ArrayBuffer> => {
  const out = new Uint8Array((weights.length / quant.blockLen) * quant.blockBytes);
  quant.quantize(weights, out);
  return out;
};

const dequantized = (quant: Quant, bytes: Uint8Array): Float32Array => {
  const out = new Float32Array((bytes.length / quant.blockBytes) * quant.blockLen);
  quant.dequantize(bytes, out);
  return out;
};

/** Sum of squares of the differences. */
const error = (a: Float32Array, b: Float32Array): number => a.reduce((sum, value, i) => sum + (value - b[i]!) ** 2, 0);

test("there is a quantizer for every type that a model can be quantized to", () => {
  expect(quantizers.map(({ name }) => name).join(" ")).toBe(
    "f32 f16 bf16 q4_0 q4_1 q5_0 q5_1 q8_0 q2_K q3_K q4_K q5_K q6_K",
  );
});

/** SHA-256 of the blocks by ggml (0.25.1, `ggml_quantize_chunk`) for `varied()`. */
const DIGESTS: Readonly<Record<string, string>> = {
  f16: "54157b251a73ef3a4ff87c5548d8705aa349e511793c4353295bcf0b58ceea9a",
  bf16: "5f8153cc812c906e11c25c20aca3fdcf707fe687647b3d50c808e9d581679d36",
  q4_0: "3850c094b5efd55a45ca68570b25112006a9fc1c443eff5d3f22da2e9f47e7cb",
  q4_1: "b90aa11bcf087018af87d4553a73d086fc387b5d84f65a8d40d4e7f42b18164a",
  q5_0: "ea94ab9591737ebdaf01fa8f54757e39a0bb9f20b9d0d3ca70021bf0af36de52",
  q5_1: "b3a4e0a2a7af30672c86c51b8135395165adb49152e9b59a65cc0dc88909cd92",
  q8_0: "cdf4c34c9bd50072c7cb3aef02b616e7fd7b6faf874e2a377aef405c2ce09ad0",
  q2_K: "7828575d99f9480c2bfec87d4b3a57f6c3974288a2540b2776c21d503dc01ea1",
  q3_K: "da16d50d4418beee65701cc1fbd57385014a56ea58a2afcd6cfebac076bbb6e0",
  q4_K: "ee6c3f5a095b0db00de411ce79defd4b98f01c72ee847336f1e29280dcf28d58",
  q5_K: "d3da1aa74effd198262eefc4c4b6da91f570d5c214b0ddb8533b378e8b46213e",
  q6_K: "ec34ebbe7eeaadd14f1e95149e98c6d7ae76a8a5bba90959a9b68c0f68313934",
};

test.each(Object.entries(DIGESTS))("%s: weights of ten kinds become ggml's bytes", (name, digest) => {
  const quant = quantizers.find((one) => one.name === name)!;
  const bytes = quantized(quant, varied());
  expect(new Bun.CryptoHasher("sha256").update(bytes).digest("hex")).toBe(digest);
});

describe("quantize", () => {
  for (const quant of quantizers) {
    goldenTest(`${quant.name}: bytes and error equal ggml's`, async () => {
      const input = new Float32Array(await Bun.file(golden("quants/input.f32")).arrayBuffer());
      const file = quant.name === "f32" ? "input.f32" : `${quant.name}.bin`;
      const expected = await Bun.file(golden(`quants/${file}`)).bytes();
      const bytes = quantized(quant, input);
      expect(error(input, dequantized(quant, bytes))).toBeLessThanOrEqual(
        1.01 * error(input, dequantized(quant, expected)),
      );
      expect(bytes.findIndex((byte, i) => byte !== expected[i])).toBe(-1);
    });

    test(`${quant.name}: zeros stay zeros`, () => {
      const zeros = new Float32Array(512);
      const bytes = quantized(quant, zeros).fill(0xff);
      quant.quantize(zeros, bytes); // over old bytes
      expect(dequantized(quant, bytes).every((weight) => weight === 0)).toBe(true);
    });

    test(`${quant.name}: equal, positive, sparse and one-sided weights keep their values within the bound`, () => {
      const bits = Math.floor((8 * quant.blockBytes) / quant.blockLen);
      const bound = { 2: 0.35, 3: 0.3, 4: 0.15, 5: 0.15 }[bits] ?? 0.05;
      for (const [what, weights] of Object.entries(awkward())) {
        const size = Math.max(...weights.map(Math.abs));
        const back = dequantized(quant, quantized(quant, weights));
        const worst = weights.reduce((most, weight, i) => Math.max(most, Math.abs(weight - back[i]!)), 0);
        if (!(worst <= bound * size)) throw new Error(`${what}: off by ${worst} of ${size} (seed ${SEED})`);
      }
    });

    test(`${quant.name}: blocks are written at an odd address, nothing else is, and too small an output is refused`, () => {
      const weights = random(512);
      const bytes = quantized(quant, weights);
      const wide = new Uint8Array(bytes.length + 3).fill(0xa5);
      quant.quantize(weights, wide.subarray(1, bytes.length + 1));
      expect(wide.subarray(1, bytes.length + 1)).toEqual(bytes);
      expect([wide[0], wide.at(-1), wide.at(-2)]).toEqual([0xa5, 0xa5, 0xa5]);
      const inside = new Float32Array(520);
      inside.set(weights, 5);
      expect(quantized(quant, inside.subarray(5, 517))).toEqual(bytes);
      expect(() => quant.quantize(weights, new Uint8Array(bytes.length - 1))).toThrow("invariant");
    });
  }
});

test("bf16: rounds ties to even and keeps NaN", () => {
  const words = new Uint32Array([0x3f808000, 0x3f818000, 0x3f808001, 0x7f800001, 0xff800000]);
  const bytes = quantized(quants.bf16 as Quantizer, new Float32Array(words.buffer));
  expect([...new Uint16Array(bytes.buffer)]).toEqual([0x3f80, 0x3f82, 0x3f81, 0x7fc0, 0xff80]);
});

function random(length: number): Float32Array {
  let state = SEED;
  return Float32Array.from({ length }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 31 - 1;
  });
}

function awkward(): Record<string, Float32Array> {
  const noise = random(512);
  return {
    equal: new Float32Array(512).fill(0.25),
    negative: new Float32Array(512).fill(-3),
    positive: noise.map((value) => 1 + value / 2),
    sparse: noise.map((value, i) => (i % 37 === 0 ? value : 0)),
    steps: noise.map((value) => Math.round(4 * value) / 4),
    noise,
  };
}
