/** Every step against the reference, on a software adapter. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { DEQUANTIZERS } from "../../../../kernels/wgsl/sources.ts";
import { cpuBackend } from "../../../../src/engine/backends/cpu.ts";
import type { Device } from "../../../../src/engine/backends/webgpu/device.ts";
import { makePlan } from "../../../../src/engine/backends/webgpu/plan.ts";
import { quants } from "../../../../src/engine/formats/quant/index.ts";
import { runCase, type Case } from "../../../conformance/cases.ts";
import { makeCase } from "../../../conformance/draft.ts";
import { drawn } from "../../../seed.ts";
import { startWebGpu, type BackendChild } from "../child.ts";
import { expectClose } from "../compare.ts";
import { chosenCases, choiceOfRun, runnableCases } from "./chosen-cases.ts";
import { sharedWebGpu } from "./shared.ts";
import { swiftShaderEnv } from "./swiftshader.ts";

let gpu: BackendChild;
beforeAll(async () => void (gpu = await sharedWebGpu()));

const choice = choiceOfRun();
const runnable = runnableCases();
const cases = chosenCases(choice, runnable);

async function expectAgreement({ backend }: BackendChild, each: Case): Promise<void> {
  const expected = await runCase(cpuBackend, each);
  const got = await runCase(backend, each);
  expect(got.length).toBe(expected.length);
  for (const [i, logits] of got.entries()) expectClose(logits, expected[i]!, each.tolerance);
}
const byName = (cases: readonly Case[]) => cases.map((each) => [each.name, each] as const);

const which = choice ? ` (cases for ${choice})` : "";
describe(`every step agrees with the reference${which}`, () => {
  test.each(byName(cases))("%s", (_, each) => expectAgreement(gpu, each), 300_000);
});

describe("matrices agree with the reference on a device without subgroups", () => {
  let plain: BackendChild;
  beforeAll(async () => void (plain = startWebGpu(await swiftShaderEnv(), ["subgroups"])));
  afterAll(() => plain.stop());
  // block types are unpacked the same way with subgroups
  const matrices = runnable.filter(({ name }) =>
    /^(linear: (\d|scaled|f16|bf16|q4_0|q6_K)|moe: (?!\w+, scaled))/.test(name),
  );
  const some = drawn("matrices without subgroups", matrices, 4);
  test.each(byName(some))("%s", (_, each) => expectAgreement(plain, each), 180_000);
});

test("an empty slice joins with another part of heads", async () => {
  const each = makeCase("an empty slice before a row", { dim: 32 }, ({ x, steps }) => {
    const [none, out] = [
      { name: "none", dim: 0 },
      { name: "y", dim: 32 },
    ];
    steps.push({ op: "slice", out: none, x, heads: 2, at: 0 }, { op: "join", out, a: none, b: x, heads: 2 });
    return out;
  });
  await expectAgreement(gpu, each);
}, 180_000);

test("embeddings of block types with grids have the reference's bits", async () => {
  const grids = runnable.filter(({ name }) => /^embed: iq[123]/.test(name));
  expect(grids).toHaveLength(7);
  for (const each of grids) expect(await runCase(gpu.backend, each)).toEqual(await runCase(cpuBackend, each));
}, 180_000);

test("a block type that no kernel reads is refused by tensor, and the error lists the types that can be read", async () => {
  const { program, options } = runnable.find(({ name }) => name === "embed: q8_0, scaled")!;
  const steps = program.steps.map((step) =>
    step.op === "embed" ? { ...step, table: { ...step.table, quant: { ...quants.q8_0, name: "q9_9" } } } : step,
  );
  const untouched = {} as Device; // it is refused before a device is used
  const planned = makePlan(untouched, { ...program, steps }, { ...options, precise: true, threads: 1, cacheDir: "" });
  await expect(planned).rejects.toThrow(/tensor 'w0.weight': the GPU kernels read f32, f16, .*, got q9_9/);
});

test("the kernels read every block type of model files", () => {
  expect(Object.keys(DEQUANTIZERS).toSorted()).toEqual(Object.keys(quants).toSorted());
});

test("the adapter computes: it is not Dawn's null backend, whose results are zeros", async () => {
  const [first] = cases;
  const session = await gpu.backend.load(first!.program, {
    ...first!.options,
    precise: true,
    threads: 1,
    cacheDir: undefined,
  });
  expect(session.device).toMatch(/SwiftShader|llvmpipe/);
  const logits = await session.run(first!.batches[0]!);
  session.close();
  expect(logits.some((value) => value !== 0)).toBe(true);
}, 180_000);
