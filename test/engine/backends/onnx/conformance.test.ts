/**
 * Every step against the reference. Precise mode: float32 throughout, the tolerance of the case. Default mode: weights
 * of a block type stay exact, but activations and float weights are rounded to 8 bits.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { ops, variants } from "../../../../kernels/onnx/lower.ts";
import { missingOps } from "../../../../src/engine/backends/missing-ops.ts";
import { cpuBackend } from "../../../../src/engine/backends/cpu.ts";
import type { Backend } from "../../../../src/engine/program/backend.ts";
import { quants } from "../../../../src/engine/formats/quant/index.ts";
import { conformanceCases, runCase, type Case } from "../../../conformance/cases.ts";
import { drawn } from "../../../seed.ts";
import { startOnnx } from "../child.ts";
import { expectClose, nmse } from "../compare.ts";

/** Rounding to 8 bits leaves 1/256 of a block's largest value, about 1e-5 in the square; a gated MLP multiplies two. */
const INT8_NMSE_MAX = 1e-3;

const onnx = startOnnx();
afterAll(() => onnx.stop());
const all = conformanceCases();
/** The library's attention over a cache takes heads of a multiple of 8. */
const hasOddHeads = ({ program }: Case): boolean =>
  program.steps.some((step) => step.op === "attention" && step.headDim % 8 !== 0);
const lacks = ({ program }: Case): readonly string[] => missingOps(program, { ops, variants });
const cases = all.filter((each) => !hasOddHeads(each) && lacks(each).length === 0);

test("a program with ops that are not lowered is refused at load by the names of all these ops", async () => {
  const refused = all.filter((each) => lacks(each).length > 0);
  expect(refused.length).toBeGreaterThan(0);
  for (const each of refused) {
    const message = `the onnx backend has no kernels for ${lacks(each).join(", ")}; the cpu backend can run it`;
    await expect(runCase(onnx.backend, each)).rejects.toThrow(message);
  }
});

setDefaultTimeout(60_000);

test("heads of a size that is no multiple of 8 are refused by layer, and the error names a backend for them", async () => {
  const refused = all.filter((each) => hasOddHeads(each) && lacks(each).length === 0);
  expect(refused.length).toBeGreaterThan(0);
  for (const each of refused) {
    const message = /attention of layer 0: expected heads of a multiple of 8, got \d+; the cpu backend can run it/;
    await expect(runCase(onnx.backend, each)).rejects.toThrow(message);
  }
});

describe("a fifth of the steps, drawn by the seed, agree with the reference in precise mode", () => {
  const some = drawn("conformance of ONNX", cases, Math.ceil(cases.length / 5));
  test.each(some.map((each) => [each.name, each] as const))("%s", async (_, each) => {
    const expected = await runCase(cpuBackend, each);
    const got = await runCase(onnx.backend, each);
    expect(got.length).toBe(expected.length);
    for (const [i, logits] of got.entries()) expectClose(logits, expected[i]!, each.tolerance);
  });
});

describe("a fifth of the block types, drawn by the seed, are close to the reference in default mode", () => {
  const rounding: Backend = {
    ...onnx.backend,
    load: (program, options) => onnx.backend.load(program, { ...options, precise: false }),
  };
  const wanted = Object.keys(quants).flatMap((quant) => [`linear: ${quant}`, `gatedMlp: ${quant}`]);
  const chosen = cases.filter(({ name }) => wanted.includes(name) || name.startsWith("moe: "));
  const some = drawn("block types of ONNX", chosen, Math.ceil(chosen.length / 5));
  test.each(some.map((each) => [each.name, each] as const))("%s", async (_, each) => {
    const expected = await runCase(cpuBackend, each);
    const got = await runCase(rounding, each);
    expect(got.length).toBe(expected.length);
    for (const [i, logits] of got.entries()) expect(nmse(logits, expected[i]!), `run ${i}`).toBeLessThan(INT8_NMSE_MAX);
  });

  test("the draw is among all block types and mixtures of experts", () =>
    expect(chosen.length).toBeGreaterThan(wanted.length));
});
