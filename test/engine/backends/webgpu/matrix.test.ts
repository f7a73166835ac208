/** Products of many rows by subgroup matrices: the choice among an adapter's matrices, and results if it has some. */
import { describe, expect, test } from "bun:test";
import { fuse } from "../../../../kernels/wgsl/fuse.ts";
import { lower } from "../../../../kernels/wgsl/lower.ts";
import { kernelSource } from "../../../../kernels/wgsl/sources.ts";
import { parseKernels, PLAIN, type Tuning } from "../../../../src/base/kernel-tuning.ts";
import { cpuBackend } from "../../../../src/engine/backends/cpu.ts";
import { chooseMatrix } from "../../../../src/engine/backends/webgpu/subgroup-matrix.ts";
import { quants, type QuantName } from "../../../../src/engine/formats/quant/index.ts";
import type { Backend, LoadOptions, Rows } from "../../../../src/engine/program/backend.ts";
import { gatedMlp, linear, makeCase, moe, type Case } from "../../../conformance/draft.ts";
import { drawn } from "../../../seed.ts";
import { joined, nmse } from "../compare.ts";
import { alter } from "./altered.ts";
import { sharedWebGpu } from "./shared.ts";
import { gpuRuntime, swiftShaderEnv } from "./swiftshader.ts";

const config = (types: string, M: number, N: number, K: number) => {
  const [componentType = "", resultComponentType = ""] = types.split(" ");
  return { componentType, resultComponentType, M, N, K };
};

describe("the subgroup matrices of an adapter", () => {
  test.each([
    [
      "the largest that fit are chosen",
      32,
      [
        [16, 8, 8],
        [16, 16, 16],
        [16, 8, 16],
      ],
      { m: 16, n: 16, k: 16, width: 32 },
    ],
    ["matrices of 8 by 8 are chosen", 32, [[8, 8, 8]], { m: 8, n: 8, k: 8, width: 32 }],
    ["matrices of fewer rows than columns are chosen", 16, [[8, 16, 16]], { m: 8, n: 16, k: 16, width: 16 }],
    ["matrices for subgroups of 64 are chosen", 64, [[16, 16, 16]], { m: 16, n: 16, k: 16, width: 64 }],
    ["matrices wider than a subgroup are not chosen", 8, [[8, 16, 16]], undefined],
    [
      "matrices larger than tiles are not chosen",
      32,
      [
        [32, 32, 8],
        [16, 16, 64],
      ],
      undefined,
    ],
    [
      "matrices that do not divide tiles are not chosen",
      32,
      [
        [12, 16, 16],
        [16, 16, 4],
      ],
      undefined,
    ],
    ["matrices for subgroups wider than a tile are not chosen", 128, [[16, 16, 16]], undefined],
  ] as const)("%s", (_, subgroupMaxSize, sizes, expected) => {
    const subgroupMatrixConfigs = sizes.map(([m, n, k]) => config("f16 f32", m, n, k));
    const found = chooseMatrix({ subgroupMaxSize, subgroupMatrixConfigs }, true);
    expect(found).toEqual(expected && { type: "f16", ...expected });
  });

  test("are float16 with float32 sums if there are any, and float32 otherwise", () => {
    const others = ["f16 f16", "i8 i32", "u8 u32"].map((types) => config(types, 16, 16, 16));
    const [halves, singles] = ["f16 f32", "f32 f32"].map((types) => config(types, 8, 8, 8));
    const typeOf = (hasF16: boolean, ...more: ReturnType<typeof config>[]): string | undefined =>
      chooseMatrix({ subgroupMaxSize: 32, subgroupMatrixConfigs: [...others, ...more] }, hasF16)?.type;
    expect(typeOf(true)).toBeUndefined();
    expect(typeOf(true, singles!, halves!)).toBe("f16");
    expect(typeOf(true, singles!)).toBe("f32"); // as on Apple's
    expect(typeOf(false, singles!, halves!)).toBe("f32");
    expect(chooseMatrix({}, true)).toBeUndefined(); // an adapter, or a browser, that has none
  });
});

const tuningOf = (text: string): Tuning => parseKernels(text) as Tuning; // never "auto" here

describe("lowering", () => {
  const made = makeCase("matrix: lowering", { dim: 256 }, (draft) => {
    gatedMlp(draft, { dim: 256, ffnDim: 256, act: "silu", quant: "q4_K" });
    return linear(draft, draft.matrix({ inDim: 256, outDim: 8 }));
  });
  const kernelsOf = (isGemm: boolean, type: "f16" | "f32" = "f16"): string[] => {
    const matrix = { type, m: 8, n: 8, k: 8, width: 8 };
    const piecesOf = (w: { tensorRows: number }) => [{ index: 0, first: 0, count: w.tensorRows }];
    const steps = made.program.steps.filter(({ op }) => op !== "takeRows");
    return fuse(lower(steps, { ctxLen: 1, isGemm, piecesOf, tuning: tuningOf("matrix"), matrix }), ["y"]).map(
      ({ kernel }) => kernel,
    );
  };

  test("converts a value to halves once for all its products, and not for float32 matrices or few rows", () => {
    const [gate, inner] = [
      ["to_halves", "matmul", "matmul", "gate"],
      ["to_halves", "matmul"],
    ];
    expect(kernelsOf(true)).toEqual(["embed", ...gate, ...inner, "matmul"]);
    expect(kernelsOf(false)).not.toContain("to_halves");
    expect(kernelsOf(true, "f32")).not.toContain("to_halves");
    const sourceOf = (quant: string): string =>
      kernelSource("matmul", [quant], {
        subgroups: true,
        matrix: { type: "f16", m: 8, n: 8, k: 8, width: 8 },
        tuning: tuningOf("matrix"),
      });
    expect(sourceOf("q4_K")).toContain("subgroupMatrixMultiplyAccumulate");
    expect(sourceOf("f32")).toBe(kernelSource("matmul", ["f32"], { subgroups: true, tuning: PLAIN }));
  });
});

const rows = (slot: number, count: number, first = 0): Rows => {
  const tokens = Int32Array.from({ length: count }, (_, i) => (5 * (first + i) + 3) % 37);
  return { slot, start: 0, tokens, logits: "all" };
};
const options = (batches: Case["batches"], more: { scale?: number } = {}) => ({
  dim: 256,
  ctxLen: 140,
  batches,
  table: { quant: "f32", scale: more.scale ?? 1 } as const,
});

async function run(backend: Backend, { program, options, batches }: Case, more: Partial<LoadOptions> = {}) {
  const session = await backend.load(program, { ...options, precise: false, threads: 1, cacheDir: undefined, ...more });
  try {
    const results: Float32Array[] = [];
    for (const batch of batches) results.push((await session.run(batch)).slice());
    return results;
  } finally {
    session.close();
  }
}

const oneProduct = (quant: QuantName, batches: Case["batches"], more: { scale?: number; inDim?: number } = {}): Case =>
  makeCase(`matrix: ${quant}`, { ...options(batches, more), dim: more.inDim ?? 256 }, (draft) =>
    linear(
      draft,
      draft.matrix({ inDim: more.inDim ?? 256, outDim: 70, quant }),
      more.scale ? undefined : draft.vector(70),
    ),
  );

const { backend } = await sharedWebGpu();
const refusal = await run(backend, oneProduct("q8_0", [[rows(0, 33)]]), { gpuKernels: tuningOf("matrix") }).then(
  () => undefined,
  (error: Error) => error.message,
);

test.skipIf(refusal === undefined)("an adapter without subgroup matrices refuses the kernels that need them", () => {
  expect(refusal).toMatch(/^kernels .*,matrix: GPU '.+' has no subgroup matrices with float32 sums$/);
  expect(process.env["HEARTH_TEST_GPU_RUNTIME"]).toBeUndefined(); // that driver has them
});

describe.skipIf(refusal !== undefined)("on an adapter with subgroup matrices", () => {
  const gpuKernels = tuningOf("matrix");

  async function expectAgreement(each: Case, tuning = gpuKernels): Promise<void> {
    const [expected, got] = [await run(cpuBackend, each), await run(backend, each, { gpuKernels: tuning })];
    const difference = nmse(joined(got), joined(expected));
    expect(difference, each.name).toBeLessThan(1e-6);
    expect(difference, each.name).toBeGreaterThan(1e-11); // they were used
  }

  const types = (Object.keys(quants) as QuantName[]).filter((quant) => quant !== "f32");
  test.each(drawn("block types of subgroup matrices", types, 1))(
    "%s: agrees with the reference",
    (quant) => {
      return expectAgreement(oneProduct(quant, [[rows(0, 33)], [rows(1, 100)]]));
    },
    60_000,
  );

  test.each(["matrix,tile=64x64,double", "matrix,tile=128x64", "matrix,tile=32x128"])(
    "%s: agrees with the reference",
    (text) => expectAgreement(oneProduct("q8_0", [[rows(0, 33)], [rows(1, 139)]], { inDim: 96 }), tuningOf(text)),
    60_000,
  );

  test("several products of one value, and experts, agree with the reference", async () => {
    const some = options([[rows(0, 50)]]);
    const gated = makeCase("matrix: gated", some, (draft) =>
      gatedMlp(draft, { dim: 256, ffnDim: 512, act: "silu", quant: "q4_K", size: 0.04 }),
    );
    const experts = makeCase("matrix: experts", some, (draft) =>
      moe(draft, { experts: 5, nUsed: 2, normalize: true, scale: 1, quant: "q8_0" }),
    );
    for (const each of [gated, experts]) await expectAgreement(each);
  }, 60_000);

  test.each([1e7, 1e-9])(
    "values about %d keep their precision, as rows have scales",
    (scale) => {
      return expectAgreement(oneProduct("q8_0", [[rows(0, 33)]], { scale }));
    },
    60_000,
  );

  test("a row has the same bits alone, before others and after others", async () => {
    const batches = [[rows(0, 33)], [rows(0, 100)], [rows(1, 7, 50), rows(0, 33)]];
    const [alone, longer, behind] = await run(backend, oneProduct("q8_0", batches), { gpuKernels });
    expect(longer!.subarray(0, alone!.length)).toEqual(alone!);
    expect(behind!.subarray(7 * 70)).toEqual(alone!);
  }, 60_000);

  test("a row with a NaN is an error", async () => {
    const each = oneProduct("q8_0", [[rows(0, 33)]]);
    const read = (name: string): Uint8Array => {
      const bytes = each.program.weights.read(name);
      return name === "w0.weight" ? new Uint8Array(bytes).fill(0xff, 4 * 40, 4 * 41) : bytes; // value 40 of token 0
    };
    const program = { ...each.program, weights: { ...each.program.weights, read } };
    const broken = run(
      backend,
      { ...each, program, batches: [[{ ...rows(0, 33), tokens: new Int32Array(33) }]] },
      { gpuKernels },
    );
    await expect(broken).rejects.toThrow(/expected numbers, got NaN at row 0/);
  }, 60_000);

  test.each(["matrix", "matrix,double"])(
    "%s: results agree with the reference if workgroup memory holds NaN at first",
    async (kernels) => {
      const { unwritten, changed, cases, wrong } = await alter({
        choice: "all",
        names: "^(linear: q8_0|moe: q8_0, scaled|headLinear: q8_0, 3 heads)$",
        kernels,
      });
      expect(unwritten).toBe("NaN");
      expect(wrong).toEqual([]);
      expect(cases).toBe(3);
      expect(changed).toBeGreaterThan(2);
    },
    120_000,
  );

  test("the trial of a search accepts the matrix kernels, also for experts", async () => {
    const kernels = "threads=64,columns=4,tile=64x64,matrix";
    const child = Bun.spawn([gpuRuntime(), `${import.meta.dir}/tune.ts`, "compare", kernels], {
      env: { ...process.env, ...(await swiftShaderEnv()) },
      stderr: "inherit",
    });
    expect(await child.stdout.json()).toBe(kernels);
  }, 60_000);

  test("precise mode uses float32", async () => {
    const each = oneProduct("q8_0", [[rows(0, 33)]]);
    const expected = await run(backend, each, { gpuKernels: PLAIN, precise: true });
    expect(await run(backend, each, { gpuKernels, precise: true })).toEqual(expected);
  }, 60_000);
});
