/**
 * Products with float weights in prompts: the level with 16-bit products multiplies them as integers. The results are
 * as close to sums in float64 as half floats are, for any shape. Precise runs use floats.
 */
import { describe, expect, test } from "bun:test";
import type { Program, Rows } from "../../../../src/engine/program/backend.ts";
import type { Step } from "../../../../src/engine/program/step.ts";
import { levelsHere } from "../../../../src/engine/backends/host/simd-library.ts";
import { makeRng } from "../../../../src/engine/text/rng.ts";
import { quants } from "../../../../src/engine/formats/quant/index.ts";
import { gaussian, makeWeightBox } from "../../../conformance/weights.ts";
import { nmse } from "../compare.ts";
import { simdLevels, twoLevels } from "./levels.ts";

/** Rounding of activations and of weights leaves 1e-8 each at most. */
const WORDS_NMSE_MAX = 3e-8;
/** Equal values are all rounded the same way. */
const ALIKE_NMSE_MAX = 2e-7;
const FLOATS_NMSE_MAX = 1e-12;
/** (values of a row, rows of the matrix, tokens) */
const SHAPES = [
  [256, 32, 2],
  [1, 1, 3],
  [2, 33, 12],
  [15, 8, 5],
  [255, 33, 13],
  [257, 31, 4],
  [383, 65, 24],
  [768, 96, 9],
  [1003, 17, 25],
] as const;

interface Product {
  readonly program: Program;
  readonly dim: number;
  /** (outDim, dim) */
  readonly weights: Float32Array;
  readonly bytes: Uint8Array;
}

function makeProduct(dim: number, outDim: number, quant: "f16" | "bf16" | "f32" = "f16"): Product {
  const box = makeWeightBox("words", makeRng(dim * 7 + outDim));
  const w = box.matrix({ inDim: dim, outDim, quant });
  const [x, y, logits] = [dim, outDim, outDim].map((of, i) => ({ name: ["x", "y", "logits"][i]!, dim: of }));
  const bytes = box.source.read(w.name);
  const weights = new Float32Array(dim * outDim);
  quants[quant].dequantize(bytes, weights);
  const program: Program = {
    shape: { arch: "words", dim, nLayers: 0, vocabSize: outDim },
    steps: [
      { op: "input", out: x! },
      { op: "linear", out: y!, x: x!, w },
      { op: "takeRows", out: logits!, x: y! },
    ],
    logits: logits!,
    states: logits!,
    weights: box.source,
  };
  return { program, dim, weights, bytes };
}

const randomRows = (count: number, dim: number, size = 1): Float32Array => {
  const rng = makeRng(count + dim);
  return Float32Array.from({ length: count * dim }, () => size * gaussian(rng));
};

/** The input of a slot, all of it wanted. */
const given = (input: Float32Array, dim: number, slot = 0): Rows => {
  return { slot, start: 0, tokens: new Int32Array(input.length / dim), input, logits: "all" };
};

function inFloat64({ weights, dim }: Product, input: Float32Array): Float32Array {
  const [rows, outDim] = [input.length / dim, weights.length / dim];
  return Float32Array.from({ length: rows * outDim }, (_, i) => {
    const [row, out] = [Math.floor(i / outDim), i % outDim];
    let sum = 0;
    for (let k = 0; k < dim; k++) sum += weights[out * dim + k]! * input[row * dim + k]!;
    return sum;
  });
}

describe.each(twoLevels("words on the CPU", simdLevels))("$level", ({ level, backend }) => {
  const hasWords = levelsHere().find((each) => each.level === level)!.words;
  const run = async (
    { program }: Product,
    batch: readonly Rows[],
    mode: { precise?: boolean; small?: boolean } = {},
  ): Promise<Float32Array> => {
    const options = { ctxLen: 64, slots: 3, precise: false, threads: 2, cacheDir: undefined };
    const session = await backend.load(program, { ...options, ...mode });
    try {
      return (await session.run(batch)).slice();
    } finally {
      session.close();
    }
  };

  test.each(["f16", "bf16", "f32"] as const)(
    "prompts with weights of %s agree with sums in float64, in any shape",
    async (quant) => {
      for (const [dim, outDim, count] of SHAPES) {
        const product = makeProduct(dim, outDim, quant);
        const input = randomRows(count, dim);
        const error = nmse(await run(product, [given(input, dim)]), inFloat64(product, input));
        expect(error, `${dim} × ${outDim}`).toBeLessThan(hasWords ? WORDS_NMSE_MAX : FLOATS_NMSE_MAX);
        if (hasWords && dim > 2) expect(error, `${dim} × ${outDim}: words`).toBeGreaterThan(FLOATS_NMSE_MAX);
      }
    },
  );

  test("values of one size, and one that outweighs the others, do not overflow sums", async () => {
    const product = makeProduct(512, 32, "f32");
    const weights = new Float32Array(product.bytes.buffer, product.bytes.byteOffset, product.weights.length);
    for (const [i] of weights.entries()) {
      const [row, at] = [Math.floor(i / 512), i % 512];
      weights[i] = row % 2 === 0 ? 3 : at % 256 === row ? 5 : 1e-4;
    }
    product.weights.set(weights);
    const input = Float32Array.from({ length: 8 * 512 }, (_, i) => (i < 4 * 512 ? 7 : i % 256 === 5 ? -1e3 : 1e-3));
    expect(nmse(await run(product, [given(input, 512)]), inFloat64(product, input))).toBeLessThan(ALIKE_NMSE_MAX);
  });

  test.each([1e-30, 1e-10, 1e10, 1e30])("activations of about %p agree with sums in float64", async (size) => {
    const product = makeProduct(300, 20);
    const input = randomRows(4, 300, size);
    const scaled = (values: Float32Array): Float32Array => values.map((value) => value / size);
    const got = scaled(await run(product, [given(input, 300)]));
    expect(nmse(got, scaled(inFloat64(product, input)))).toBeLessThan(WORDS_NMSE_MAX);
  });

  test("zeros give zeros, and subnormal activations give nearly zero", async () => {
    const product = makeProduct(300, 20);
    const input = new Float32Array(4 * 300).fill(1e-44, 600);
    const got = await run(product, [given(input, 300)]);
    expect(got.subarray(0, 40)).toEqual(new Float32Array(40));
    expect(Math.max(...got.map(Math.abs))).toBeLessThan(1e-40);
  });

  test.each([NaN, Infinity, -Infinity])("%p among activations or weights is an error", async (value) => {
    const product = makeProduct(300, 20, "f32");
    const input = randomRows(5, 300);
    const hostile = input.with(2 * 300 + 299, value);
    await expect(run(product, [given(hostile, 300)])).rejects.toThrow("logits");
    new Float32Array(product.bytes.buffer, product.bytes.byteOffset)[7 * 300 + 260] = value;
    await expect(run(product, [given(input, 300)])).rejects.toThrow("logits");
  });

  test("a row has the same bits whichever rows are beside it", async () => {
    const product = makeProduct(700, 50);
    const all = randomRows(30, 700);
    for (let i = 0; i < all.length; i++) if (Math.floor(i / 700) % 3 === 1) all[i]! *= 1e6;
    const together = await run(product, [given(all, 700)]);
    const some = [all.subarray(0, 2 * 700), all.subarray(7 * 700, 20 * 700)];
    const apart = await run(
      product,
      some.map((rows, slot) => given(rows, 700, slot)),
    );
    expect(apart.subarray(0, 100)).toEqual(together.subarray(0, 100));
    expect(apart.subarray(100)).toEqual(together.subarray(7 * 50, 20 * 50));
  });

  test.each([
    ["precise runs", { precise: true }],
    ["small models", { small: true }],
  ] as const)("%s multiply floats", async (_, mode) => {
    const product = makeProduct(400, 33);
    const input = randomRows(6, 400);
    expect(nmse(await run(product, [given(input, 400)], mode), inFloat64(product, input))).toBeLessThan(
      FLOATS_NMSE_MAX,
    );
  });

  test("a single requested row, as in decode, multiplies floats", async () => {
    const product = makeProduct(400, 33);
    const { program } = product;
    const [input, linear] = program.steps as readonly [Step & { op: "input" }, Step & { op: "linear" }]; // made above
    const [x, last, out] = [input.out, { name: "last", dim: 400 }, program.logits!];
    const steps: Step[] = [input, { op: "takeRows", out: last, x }, { ...linear, out, x: last }];
    const rows = randomRows(6, 400);
    const got = await run({ ...product, program: { ...program, steps } }, [{ ...given(rows, 400), logits: "last" }]);
    expect(nmse(got, inFloat64(product, rows.subarray(5 * 400)))).toBeLessThan(FLOATS_NMSE_MAX);
  });
});
