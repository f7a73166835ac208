/** Which neighbours become one dispatch, and which must not. What kernels compute is in conformance.test.ts. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Dispatch } from "../../../kernels/wgsl/dispatch.ts";
import { fuse } from "../../../kernels/wgsl/fuse.ts";
import { lower } from "../../../kernels/wgsl/lower.ts";
import { loadProgram } from "../../../src/arch/index.ts";
import type { Program } from "../../../src/backend/backend.ts";
import type { Step } from "../../../src/backend/step.ts";
import { openGguf } from "../../../src/gguf/read.ts";
import { writeGguf } from "../../../src/gguf/write.ts";
import { makeModel } from "../../arch/models.ts";
import { makeWeightBox } from "../../conformance/weights.ts";
import { makeRng } from "../../../src/base/rng.ts";

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-fuse-"))));
afterAll(() => rm(folder, { recursive: true }));

const whole = {
  ctxLen: 64,
  piecesOf: (weight: { tensorRows: number }) => [{ index: 0, first: 0, count: weight.tensorRows }],
};

async function dispatchesOf(name: string, many: boolean): Promise<Dispatch[]> {
  const path = join(folder, `${name}.gguf`);
  await writeGguf(path, makeModel(name));
  const gguf = openGguf(path);
  try {
    const { steps, states, logits }: Program = loadProgram(gguf);
    return fuse(lower(steps, { ...whole, many }), [states.name, logits!.name]);
  } finally {
    gguf.close();
  }
}

/** Kernels from one attention to the next: a layer's worth. */
function layerOf(dispatches: readonly Dispatch[]): string[] {
  const at = dispatches.flatMap(({ kernel }, i) => (kernel.startsWith("attention") ? [i] : []));
  return dispatches.slice(at[0], at[1]).map(({ kernel }) => kernel);
}

test("a llama layer takes eight dispatches at decode", async () => {
  expect(layerOf(await dispatchesOf("llama", false))).toEqual([
    "attention",
    "linear",
    "rms_norm",
    "gated_linear",
    "linear",
    "rms_norm",
    "linear_3",
    "rope_store",
  ]);
});

test("a prompt's layer keeps its products apart, with what is added to them", async () => {
  const products = ["matmul", "matmul", "matmul"];
  const expected = [
    "attention_tile",
    "matmul",
    "rms_norm",
    "matmul",
    "matmul",
    "gate",
    "matmul",
    "rms_norm",
    ...products,
  ];
  expect(layerOf(await dispatchesOf("llama", true))).toEqual([...expected, "rope_store"]);
});

const x = { name: "x", dim: 32 };
const y = { name: "y", dim: 32 };
const z = { name: "z", dim: 32 };

function kernelsOf(more: readonly Step[], results = ["z"]): string[] {
  const { matrix } = makeWeightBox("fuse", makeRng(1));
  const steps: Step[] = [
    { op: "embed", out: x, table: matrix({ inDim: 32, outDim: 8 }), scale: 1 },
    { op: "linear", out: y, x, w: matrix({ inDim: 32, outDim: 32 }) },
    ...more,
  ];
  return fuse(lower(steps, { ...whole, many: false }), results).map(({ kernel }) => kernel);
}

test("a product and the sum behind it are one, on either side, with a factor where it is on the product", () => {
  expect(kernelsOf([{ op: "add", out: z, a: x, b: y, scale: 0.5 }])).toEqual(["embed", "linear"]);
  expect(kernelsOf([{ op: "add", out: z, a: y, b: x, scale: 1 }])).toEqual(["embed", "linear"]);
  expect(kernelsOf([{ op: "add", out: z, a: y, b: x, scale: 0.5 }])).toEqual(["embed", "linear", "add"]);
});

test("a product that somebody else reads, or that is a result, stays", () => {
  const add: Step = { op: "add", out: z, a: x, b: y, scale: 1 };
  expect(kernelsOf([add, { op: "add", out: z, a: z, b: y, scale: 1 }])).toEqual(["embed", "linear", "add", "add"]);
  expect(kernelsOf([add], ["z", "y"])).toEqual(["embed", "linear", "add"]);
  expect(kernelsOf([{ op: "add", out: z, a: y, b: y, scale: 1 }])).toEqual(["embed", "linear", "add"]);
});
