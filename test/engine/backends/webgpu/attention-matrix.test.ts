/** Attention of prompts by subgroup matrices, on an adapter that has them: matrix.test.ts says which. */
import { describe, expect, test } from "bun:test";
import { fuse } from "../../../../kernels/wgsl/fuse.ts";
import { lower } from "../../../../kernels/wgsl/lower.ts";
import { kernelSource, KERNELS } from "../../../../kernels/wgsl/sources.ts";
import {
  ATTENTION_BYTES,
  parseKernels,
  PLAIN,
  type SubgroupMatrix,
  type Tuning,
} from "../../../../src/base/kernel-tuning.ts";
import { cpuBackend } from "../../../../src/engine/backends/cpu.ts";
import type { Backend, LoadOptions, Rows } from "../../../../src/engine/program/backend.ts";
import { attention, makeCase, plainRope, type Case } from "../../../conformance/draft.ts";
import { rowCases } from "../../../conformance/row-cases.ts";
import { joined, nmse } from "../compare.ts";
import { alter } from "./altered.ts";
import { sharedWebGpu } from "./shared.ts";
import { gpuRuntime, swiftShaderEnv } from "./swiftshader.ts";

const gpuKernels = parseKernels("attention") as Tuning; // never "auto" here

const rows = (slot: number, start: number, count: number, logits: Rows["logits"] = "all"): Rows => ({
  slot,
  start,
  tokens: Int32Array.from({ length: count }, (_, i) => (5 * slot + 7 * (start + i) + 1) % 37),
  logits,
});
/** Whole tiles of lines and keys, parts of them, and several sequences in a tile. */
const batches: Case["batches"] = [
  [rows(0, 0, 150)],
  [rows(1, 0, 7), rows(2, 0, 66), rows(0, 150, 9)],
  [rows(1, 7, 40, "last")],
];
const caseOf = (name: string, options: Parameters<typeof attention>[1]): Case =>
  makeCase(`attention by matrices: ${name}`, { dim: 64, ctxLen: 300, batches }, (draft) =>
    attention(draft, { rope: plainRope, ...options }),
  );
const plain = { nHeads: 6, nKvHeads: 2, headDim: 64 };

describe("lowering", () => {
  const kernelsOf = (
    headDim: number,
    { isGemm = true, matrix = {} as Partial<SubgroupMatrix>, cached = "f16", biased = false } = {},
  ) => {
    const bias = biased && { bias: { values: new Float32Array(4 * 3), far: 1 } };
    const { program } = caseOf("lowering", { nHeads: 4, nKvHeads: 1, headDim, ...bias });
    const piecesOf = (w: { tensorRows: number }) => [{ index: 0, first: 0, count: w.tensorRows }];
    const own = { type: "f16", m: 16, n: 8, k: 16, width: 32, ...matrix } as const;
    const cacheType = cached as "f16";
    const lowered = lower(program.steps, { ctxLen: 64, isGemm, piecesOf, tuning: gpuKernels, matrix: own, cacheType });
    return fuse(lowered, ["y"]).filter(({ kernel }) => kernel.includes("attention"));
  };

  test("chooses the smallest matrix kernel that fits a head, and the plain kernel for other heads", () => {
    const formOf = (headDim: number): string => kernelsOf(headDim)[0]!.kernel;
    expect(formOf(16)).toBe("attention_matrix_64");
    expect(formOf(68)).toBe("attention_matrix_128");
    expect(formOf(256)).toBe("attention_matrix_256");
    expect(formOf(260)).toBe("attention_tile");
    expect(formOf(66)).toBe("attention_tile"); // its values come in no fours
  });

  test("gives each workgroup 32 lines, one for each head and row", () => {
    const [found] = kernelsOf(64);
    expect(found!.grid).toMatchObject({ x: 1, times: 4, rowsEach: 32 });
  });

  test("chooses the matrix kernel only for many rows, float16 and matrices of eight columns", () => {
    expect(kernelsOf(64, { isGemm: false })[0]!.kernel).toBe("rope_attention");
    expect(kernelsOf(64, { matrix: { type: "f32" } })[0]!.kernel).toBe("attention_tile");
    expect(kernelsOf(64, { matrix: { n: 4 } })[0]!.kernel).toBe("attention_tile");
  });

  test("chooses kernels that add biases by distance", () => {
    expect(kernelsOf(64, { biased: true })[0]!.kernel).toBe("attention_tile");
    expect(kernelsOf(64, { biased: true, isGemm: false })[0]!.kernel).toBe("attention");
  });

  test("takes the workgroup memory that its tuning requests", () => {
    const code = kernelSource("attention_matrix_256", ["f16"], {
      subgroups: true,
      matrix: { type: "f16", m: 16, n: 16, k: 16, width: 32 },
    });
    const constants = new Map<string, number>();
    const valueOf = (text: string): number => {
      const named = text.replace(/[A-Z]\w*/g, (name) => String(constants.get(name)));
      return Number(new Function(`return ${named.replace(/(\d)u/g, "$1")}`)());
    };
    for (const [, name, text] of code.matchAll(/^const (\w+): u32 = ([^;]+);/gm)) constants.set(name!, valueOf(text!));
    const bytes = [...code.matchAll(/^var<workgroup> \w+: array<(vec4<u32>|u32|f32), (.+)>;/gm)].map(
      ([, type, length]) => (type!.startsWith("vec4") ? 16 : 4) * valueOf(length!),
    );
    const total = bytes.reduce((sum, each) => sum + each, 16);
    expect(bytes).toHaveLength(5);
    expect(total).toBe(ATTENTION_BYTES);
    expect(KERNELS.attention_matrix_256).not.toBe(KERNELS.attention_matrix_128);
  });
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

const { backend } = await sharedWebGpu();
const refusal = await run(backend, caseOf("any", plain), { gpuKernels }).then(
  () => undefined,
  (error: Error) => error.message,
);

test.skipIf(refusal === undefined)("an adapter without subgroup matrices refuses the kernel", () => {
  expect(refusal).toMatch(/^kernels .*,attention: GPU '.+' has no subgroup matrices of float16 with float32 sums$/);
  expect(process.env["HEARTH_TEST_GPU_RUNTIME"]).toBeUndefined(); // that driver has them
});

describe.skipIf(refusal !== undefined)("on an adapter with subgroup matrices", () => {
  async function expectAgreement(each: Case): Promise<void> {
    const [expected, got] = [await run(cpuBackend, each), await run(backend, each, { gpuKernels })];
    const difference = nmse(joined(got), joined(expected));
    expect(difference, each.name).toBeLessThan(1e-6);
    expect(difference, each.name).toBeGreaterThan(1e-9); // they were used
  }

  test.each([
    [
      "four heads of 64 to a key, in a window, with sinks",
      { nHeads: 8, nKvHeads: 2, headDim: 64, window: 70, sinks: true },
    ],
    [
      "heads of 72, values of 96, capped, in chunks",
      { nHeads: 3, nKvHeads: 1, headDim: 72, valueDim: 96, softCap: 3, window: 64, chunked: true },
    ],
    ["heads of 256, with ALiBi", { nHeads: 2, nKvHeads: 2, headDim: 256, alibi: 8 }],
  ] as const)("%s: agrees with the reference", (name, options) => expectAgreement(caseOf(name, options)), 120_000);

  const spans = rowCases().filter(({ name }) =>
    /^rows: (a span that sees both ways, (a window|sinks)|of several)/.test(name),
  );
  test.each(spans.map((each) => [each.name, each] as const))(
    "%s: agrees with the reference",
    (_, each) => expectAgreement(each),
    60_000,
  );

  test.each(["q8_0", "q4_0"] as const)(
    "keys and values in %s: agrees with the plain kernel",
    async (kvType) => {
      const each = caseOf(kvType, plain);
      const [expected, got] = [await run(backend, each, { kvType }), await run(backend, each, { gpuKernels, kvType })];
      const difference = nmse(joined(got), joined(expected));
      expect(difference).toBeLessThan(1e-6);
      expect(difference).toBeGreaterThan(1e-9);
    },
    120_000,
  );

  test("a row has the same bits in one run, in chunks and beside other sequences", async () => {
    const [whole, beside, ...parts] = await run(
      backend,
      {
        ...caseOf("bits", { ...plain, window: 100 }),
        batches: [
          [rows(0, 0, 150)],
          [
            { ...rows(0, 0, 11), slot: 1 },
            { ...rows(0, 0, 150), slot: 2 },
          ],
          [rows(0, 0, 37)],
          [{ ...rows(0, 0, 5), slot: 1 }, rows(0, 37, 64), { ...rows(0, 0, 3), slot: 2 }],
          [rows(0, 101, 49)],
        ],
      },
      { gpuKernels },
    );
    const dim = whole!.length / 150;
    expect(beside!.subarray(11 * dim)).toEqual(whole!);
    const own = [parts[0]!, parts[1]!.subarray(5 * dim, 69 * dim), parts[2]!];
    expect(joined(own)).toEqual(whole!);
  }, 120_000);

  test("precise mode uses float32", async () => {
    const each = caseOf("precise", plain);
    const expected = await run(backend, each, { gpuKernels: PLAIN, precise: true });
    expect(await run(backend, each, { gpuKernels, precise: true })).toEqual(expected);
  }, 60_000);

  test("results agree with the reference if workgroup memory holds NaN at first", async () => {
    const { unwritten, changed, cases, wrong } = await alter({
      choice: "all",
      names: "^attention: (a long context, 4 heads on 1 of 64|a window of 3|sinks)$",
      kernels: "attention",
    });
    expect(unwritten).toBe("NaN");
    expect(wrong).toEqual([]);
    expect(cases).toBe(3);
    expect(changed).toBeGreaterThan(2);
  }, 120_000);

  test("the trial accepts the kernel, and refuses one with a fault", async () => {
    const child = Bun.spawn([gpuRuntime(), `${import.meta.dir}/attention-trial.ts`], {
      env: { ...process.env, ...(await swiftShaderEnv()) },
      stderr: "inherit",
    });
    expect(await child.stdout.json()).toEqual({ right: true, faults: 1, broken: { right: false, faster: false } });
  }, 120_000);
});
