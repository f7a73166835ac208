/** Work that the operators do not support is done by other operators, or refused before any weight is packed. */
import { afterAll, describe, expect, test } from "bun:test";
import type { WeightFile } from "../../../../kernels/onnx/graph.ts";
import { lower } from "../../../../kernels/onnx/lower.ts";
import { makeHalfTable } from "../../../../kernels/onnx/weights.ts";
import { cpuBackend } from "../../../../src/engine/backends/cpu.ts";
import { statesEnd } from "../../../../src/engine/program/states.ts";
import type { RopeScaling } from "../../../../src/engine/program/step.ts";
import { planWeightFile } from "../../../../src/engine/backends/onnx/weight-file.ts";
import type { Quant } from "../../../../src/engine/formats/quant/quant.ts";
import { quants } from "../../../../src/engine/formats/quant/index.ts";
import { runCase } from "../../../conformance/cases.ts";
import { attention, linear, makeCase, type Case } from "../../../conformance/draft.ts";
import { startOnnx } from "../child.ts";
import { expectClose } from "../compare.ts";

const onnx = startOnnx();
afterAll(() => onnx.stop());

const rope: RopeScaling = {
  base: 10_000,
  rotaryDim: 16,
  style: "norm",
  freqScale: 1,
  extFactor: 0,
  attnFactor: 1,
  betaFast: 32,
  betaSlow: 1,
  ctxLenOrig: 8,
};

/** Attention with heads of `headDim`, of which `rotaryDim` dimensions rotate; 0 for none. */
function heads(headDim: number, rotaryDim: number, style: RopeScaling["style"] = "norm"): Case {
  const rotation = rotaryDim > 0 ? { rope: { ...rope, rotaryDim, style } } : {};
  return makeCase(`heads of ${headDim}, ${rotaryDim} rotate, ${style}`, { dim: 32 }, (draft) =>
    attention(draft, { nHeads: 4, nKvHeads: 2, headDim, ...rotation }),
  );
}

describe("heads", () => {
  const shapes = [
    [16, 12],
    [16, 2],
    [8, 8],
    [8, 4],
    [40, 16],
    [40, 40],
    [48, 24],
    [72, 16],
    [80, 20],
    [24, 0],
  ] as const;
  test("sizes that the attention operator does not rotate agree with the reference", async () => {
    for (const style of ["norm", "neox"] as const) {
      for (const [headDim, rotaryDim] of shapes) {
        const each = heads(headDim, rotaryDim, style);
        const expected = await runCase(cpuBackend, each);
        const got = await runCase(onnx.backend, each);
        for (const [i, logits] of got.entries()) expectClose(logits, expected[i]!, each.tolerance);
      }
    }
  });

  test("queries and keys with different rotations agree with the reference", async () => {
    const each = heads(32, 32);
    const steps = each.program.steps.map((step) =>
      step.op === "rope" && step.x.name === "k" ? { ...step, rope: { ...rope, rotaryDim: 32, base: 500 } } : step,
    );
    const mixed: Case = { ...each, program: { ...each.program, steps } };
    const expected = await runCase(cpuBackend, mixed);
    for (const [i, logits] of (await runCase(onnx.backend, mixed)).entries()) {
      expectClose(logits, expected[i]!, each.tolerance);
    }
  });

  test("a size that is no multiple of 8 is refused by layer and size", async () => {
    for (const [headDim, rotaryDim] of [
      [20, 20],
      [12, 8],
      [1, 0],
    ] as const) {
      const failure = await runCase(onnx.backend, heads(headDim, rotaryDim)).catch((error: unknown) => error);
      expect(failure).toMatchObject({
        code: "unsupported",
        message: `attention of layer 0: expected heads of a multiple of 8, got ${headDim}; the cpu backend can run it`,
      });
    }
  });
});

describe("a block type without a packing of its own", () => {
  const rare: Quant = { ...quants.f16, name: "rare" };
  const { program } = makeCase("linear: rare", { dim: 64 }, (draft) => {
    const w = draft.matrix({ inDim: 64, outDim: 5, quant: "f16" });
    return linear(draft, { ...w, quant: rare, scale: Float32Array.of(-2) });
  });
  const step = program.steps.find(({ op }) => op === "linear");
  if (step?.op !== "linear") throw new Error("the program has a product");
  const exact = new Float32Array(64 * 5);
  rare.dequantize(program.weights.read(step.w.name), exact);
  for (let i = 0; i < exact.length; i++) exact[i]! *= -2;

  /** The content of the file beside the graph, in order. */
  function written(precise: boolean): readonly Uint8Array[] {
    const pieces: Uint8Array[] = [];
    const write = (_offset: number, bytes: Uint8Array): void => void pieces.push(bytes.slice());
    const file: WeightFile = { ...planWeightFile("weights"), wanted: true, write };
    lower(program, {
      file,
      precise,
      encoder: false,
      half: makeHalfTable(),
      packed: () => {},
      statesEnd: statesEnd(program),
    });
    return pieces;
  }

  test("is stored as float32 in precise mode", () => {
    const [floats, ...more] = written(true);
    expect(more).toEqual([]);
    expect(new Float32Array(floats!.buffer)).toEqual(exact);
  });

  test("is rounded to 8 bits per block in default mode", () => {
    const [data, scaleBytes] = written(false);
    const scales = new Float32Array(scaleBytes!.buffer);
    expect([data!.length, scales.length]).toEqual([exact.length, exact.length / 32]);
    for (const [i, value] of exact.entries()) {
      const scale = scales[Math.floor(i / 32)]!;
      expect(Math.abs((data![i]! - 128) * scale - value)).toBeLessThanOrEqual(Math.abs(scale) * 0.501);
    }
  });
});
