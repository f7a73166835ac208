/** Every step against the reference, on a software adapter. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { DEQUANTIZERS } from "../../../kernels/wgsl/sources.ts";
import { cpuBackend } from "../../../src/backend/cpu.ts";
import type { Step, Weight } from "../../../src/backend/step.ts";
import { conformanceCases, runCase, type Case } from "../../conformance/cases.ts";
import { startWebGpu, type BackendChild } from "../child.ts";
import { expectClose } from "../compare.ts";
import { swiftShaderEnv } from "./swiftshader.ts";

let gpu: BackendChild;
beforeAll(async () => void (gpu = startWebGpu(await swiftShaderEnv())));
afterAll(() => gpu.stop());

/** The block types of a case's matrices that no kernel reads. */
function unread({ program }: Case): string[] {
  const weights = program.steps.flatMap((step: Step) => Object.values(step)).filter(isMatrix);
  return weights.map(({ quant }) => quant.name).filter((name) => !DEQUANTIZERS[name]);
}

const isMatrix = (value: unknown): value is Weight => typeof value === "object" && value !== null && "quant" in value;

const [refused, read] = [conformanceCases(), conformanceCases()].map((cases, i) =>
  cases.filter((each) => unread(each).length > 0 === (i === 0)),
) as [Case[], Case[]]; // as many as went in

async function expectAgreement({ backend }: BackendChild, cases: readonly Case[]): Promise<void> {
  for (const each of cases) {
    const expected = await runCase(cpuBackend, each);
    const got = await runCase(backend, each);
    expect(got.length).toBe(expected.length);
    for (const [i, logits] of got.entries()) expectClose(logits, expected[i]!, each.tolerance);
  }
}

test("every step agrees with the reference", () => expectAgreement(gpu, read), 300_000);

test("matrices agree with the reference where a device has no subgroups", async () => {
  const plain = startWebGpu(await swiftShaderEnv(), ["subgroups"]);
  try {
    const matrices = read.filter(({ name }) => /^(linear: (\d|scaled|f16|bf16|q4_0|q6_K)|moe:)/.test(name));
    expect(matrices.length).toBeGreaterThan(15);
    await expectAgreement(plain, matrices);
  } finally {
    await plain.stop();
  }
}, 300_000);

test("a block type that no kernel reads is refused, naming the tensor and what can be read", async () => {
  for (const each of refused) {
    const message = `tensor 'w\\d+.weight': the GPU kernels read .*f32.*, got ${unread(each)[0]}`;
    await expect(runCase(gpu.backend, each)).rejects.toThrow(new RegExp(message));
  }
}, 60_000);

test("the adapter computes: it is not Dawn's null backend, whose results are zeros", async () => {
  const [first] = read;
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
}, 60_000);
