/**
 * Variants of the matrix kernels against the reference: sizes of workgroups, products of bytes, float16 tiles. Each on
 * awkward shapes, for few rows and for many.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { LOADS16 } from "../../../../kernels/wgsl/loads16.ts";
import { kernelSource } from "../../../../kernels/wgsl/sources.ts";
import { parseKernels, type Tuning } from "../../../../src/base/kernel-tuning.ts";
import type { Backend, LoadOptions, Rows } from "../../../../src/engine/program/backend.ts";
import { cpuBackend } from "../../../../src/engine/backends/cpu.ts";
import { quants, type QuantName } from "../../../../src/engine/formats/quant/index.ts";
import { attention, gatedMlp, linear, makeCase, moe, type Case, type Draft } from "../../../conformance/draft.ts";
import { drawn } from "../../../seed.ts";
import type { BackendChild } from "../child.ts";
import { differences, expectClose, nmse } from "../compare.ts";
import { sharedWebGpu } from "./shared.ts";

/** Bound for sums of products with values of x rounded to 8 bits. */
const PACKED_NMSE_MAX = 1e-4;

let gpu: BackendChild;
beforeAll(async () => void (gpu = await sharedWebGpu()));

const tuningOf = (text: string): Tuning => parseKernels(text) as Tuning; // never "auto" here

async function run(backend: Backend, { program, options, batches }: Case, more: Partial<LoadOptions> = {}) {
  const all = { ...options, precise: false, threads: 1, cacheDir: undefined, ...more };
  const session = await backend.load(program, all);
  try {
    const results: Float32Array[] = [];
    for (const batch of batches) results.push((await session.run(batch)).slice());
    return results;
  } finally {
    session.close();
  }
}

/** All runs of a case concatenated. */
const join = (runs: readonly Float32Array[]): Float32Array => Float32Array.from(runs.flatMap((each) => [...each]));

const rows = (slot: number, start: number, count: number): Rows => {
  const tokens = Int32Array.from({ length: count }, (_, i) => (5 * i + 3) % 37);
  return { slot, start, tokens, logits: "all" };
};

/** Row counts near the kernels' own. */
function unevenBatches(): Case["batches"] {
  return [1, 4, 5, 33, 65].map((count, slot) => [rows(slot % 3, 0, count)]);
}

/** Matrices of one type after another, floats too. */
function mixed({ matrix }: Draft): Draft["matrix"] {
  let next = 0;
  const types = ["q4_0", "f32", "q8_0"] as const;
  return (options) => matrix({ ...options, quant: types[next++ % types.length]! });
}

function bytesCase(quant: QuantName, outDim: number): Case {
  const dim = Math.max(quants[quant].blockLen, 96 - (96 % quants[quant].blockLen)) * 3;
  return makeCase(`variants: ${quant} to ${outDim}`, { dim }, (draft) =>
    linear(draft, draft.matrix({ inDim: dim, outDim, quant })),
  );
}

describe("products of bytes", () => {
  for (const quant of drawn("products of bytes", Object.keys(LOADS16) as QuantName[], 1)) {
    test(`${quant}: agree with the reference, and differ from products of floats`, async () => {
      const each = bytesCase(quant, 33);
      const expected = join(await run(cpuBackend, each));
      const packed = join(await run(gpu.backend, each, { gpuKernels: tuningOf("packed") }));
      expect(nmse(packed, expected)).toBeLessThan(PACKED_NMSE_MAX);
      expect(nmse(packed, expected)).toBeGreaterThan(1e-8); // they were used
    }, 180_000);
  }

  test("agree with the reference for several matrices, some of floats, and for experts", async () => {
    const cases = [
      makeCase("variants: gated", { dim: 96 }, (draft) =>
        gatedMlp(draft, { dim: 96, ffnDim: 160, act: "silu", quant: "q5_1" }),
      ),
      makeCase("variants: experts", { dim: 64 }, (draft) =>
        moe(draft, { experts: 5, nUsed: 2, normalize: true, scale: 1, quant: "q4_1" }),
      ),
      makeCase("variants: attention", { dim: 64 }, (draft) =>
        attention({ ...draft, matrix: mixed(draft) }, { nHeads: 4, nKvHeads: 2, headDim: 16 }),
      ),
    ];
    for (const each of drawn("bytes of several matrices", cases, 1)) {
      const expected = join(await run(cpuBackend, each));
      const got = join(await run(gpu.backend, each, { gpuKernels: tuningOf("packed,columns=2") }));
      expect(nmse(got, expected), each.name).toBeLessThan(10 * PACKED_NMSE_MAX);
    }
  }, 180_000);

  test("give a row the same bits alone and beside others", async () => {
    const counts = [1, 2, 8, 9, 32];
    const made = bytesCase("q4_K", 9);
    const batches = counts.map((count) => [rows(0, 0, count)]);
    const each = { ...made, options: { ...made.options, ctxLen: 32 }, batches };
    for (const text of ["packed", "plain", "threads=32,columns=8", "loads16"]) {
      const [alone, ...company] = await run(gpu.backend, each, { gpuKernels: tuningOf(text) });
      for (const results of company) expect(differences(results.slice(0, 9), alone!)).toBe(0);
    }
  }, 180_000);

  test("make a NaN among activations an error", async () => {
    const each = bytesCase("q8_0", 5);
    const read = (name: string): Uint8Array => {
      const bytes = each.program.weights.read(name);
      return name === "w0.weight" ? new Uint8Array(bytes).fill(0xff, 4 * 40, 4 * 41) : bytes; // value 40 of token 0
    };
    const program = { ...each.program, weights: { ...each.program.weights, read } };
    const batches = [[{ slot: 0, start: 0, tokens: Int32Array.of(0), logits: "last" as const }]];
    const broken = run(gpu.backend, { ...each, program, batches }, { gpuKernels: tuningOf("packed") });
    await expect(broken).rejects.toThrow(/expected numbers, got NaN at row 0/);
  }, 180_000);

  test("are not made in precise mode", async () => {
    const each = bytesCase("q4_0", 5);
    const expected = await run(gpu.backend, each, { gpuKernels: "auto", precise: true });
    const got = await run(gpu.backend, each, { gpuKernels: tuningOf("packed"), precise: true });
    expect(got).toEqual(expected);
  }, 180_000);
});

describe("loads of 16 bytes", () => {
  for (const quant of drawn("loads of 16 bytes", Object.keys(LOADS16) as QuantName[], 1)) {
    test(`${quant}: agree with the reference`, async () => {
      const tuning = tuningOf("loads16");
      expect(kernelSource("linear", [quant], { subgroups: false, tuning })).toContain("unit_at");
      const each = bytesCase(quant, 9);
      const expected = await run(cpuBackend, each);
      const got = await run(gpu.backend, each, { gpuKernels: tuning });
      for (const [i, logits] of got.entries()) expectClose(logits, expected[i]!, each.tolerance);
    }, 180_000);
  }

  test("agree with the reference for several matrices after a norm, and for experts", async () => {
    const cases = [
      makeCase("variants: normed", { dim: 256 }, (draft) => {
        const h = { name: "h", dim: 256 };
        draft.steps.push({ op: "rmsNorm", out: h, x: draft.x, w: draft.vector(256), eps: 1e-5 });
        return gatedMlp({ ...draft, x: h }, { dim: 256, ffnDim: 256, act: "silu", quant: "q5_K" });
      }),
      makeCase("variants: experts", { dim: 256 }, (draft) =>
        moe(draft, { experts: 3, nUsed: 2, normalize: true, scale: 1, quant: "q4_K" }),
      ),
    ];
    for (const each of drawn("loads of several matrices", cases, 1)) {
      const expected = await run(cpuBackend, each);
      const got = await run(gpu.backend, each, { gpuKernels: tuningOf("loads16,columns=2") });
      for (const [i, logits] of got.entries()) expectClose(logits, expected[i]!, each.tolerance);
    }
  }, 180_000);
});

describe("sizes", () => {
  const cases = [
    makeCase("variants: f32, odd", { dim: 33, ctxLen: 65, batches: unevenBatches() }, (draft) =>
      linear(draft, draft.matrix({ inDim: 33, outDim: 129 }), draft.vector(129)),
    ),
    makeCase("variants: one to one", { dim: 1 }, (draft) => linear(draft, draft.matrix({ inDim: 1, outDim: 1 }))),
    makeCase("variants: q4_K", { dim: 512, ctxLen: 65, batches: unevenBatches() }, (draft) =>
      gatedMlp(draft, { dim: 512, ffnDim: 256, act: "gelu", quant: "q4_K", size: 0.04 }),
    ),
    makeCase("variants: experts", { dim: 40 }, (draft) =>
      moe(draft, { experts: 7, nUsed: 3, normalize: false, scale: 1 }),
    ),
  ];
  const tunings = ["threads=32,columns=1", "threads=256,columns=8,tile=64x128", "columns=2,tile=64x64,double"];
  for (const text of drawn("sizes of kernels", tunings, 1)) {
    test(`${text}: agree with the reference`, async () => {
      for (const each of cases) {
        const expected = await run(cpuBackend, each);
        const got = await run(gpu.backend, each, { gpuKernels: tuningOf(text) });
        for (const [i, logits] of got.entries()) expectClose(logits, expected[i]!, each.tolerance);
      }
    }, 120_000);
  }
});

describe("float16 tiles", () => {
  test("agree with the reference on a device with float16, and are refused on others", async () => {
    const each = makeCase("variants: f16 tiles", { dim: 96, ctxLen: 33, batches: [[rows(0, 0, 33)]] }, (draft) =>
      linear(draft, draft.matrix({ inDim: 96, outDim: 70, quant: "q8_0" })),
    );
    const got = await run(gpu.backend, each, { gpuKernels: tuningOf("f16") }).catch((error: Error) => error);
    if (got instanceof Error) {
      expect(got.message).toMatch(/^kernels threads=64,.*,f16: GPU '.+' has no shader-f16$/);
      expect(process.env["HEARTH_TEST_VULKAN_DRIVER"]).toBeUndefined(); // SwiftShader lacks it, lavapipe has it
      return;
    }
    const difference = nmse(join(got), join(await run(cpuBackend, each)));
    expect(difference).toBeLessThan(1e-6);
    expect(difference).toBeGreaterThan(1e-11); // they were used
  }, 170_000);
});

test("a tuning that the device has no room for is refused with the device's limits", async () => {
  const huge = { ...tuningOf("plain"), columns: 8, threads: 4096 };
  const message = /^kernels threads=4096,.*: GPU '.+' has workgroups of \d+ threads and \d+ bytes$/;
  await expect(run(gpu.backend, bytesCase("q4_0", 3), { gpuKernels: huge })).rejects.toThrow(message);
}, 180_000);
