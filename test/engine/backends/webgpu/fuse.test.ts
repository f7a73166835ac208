/**
 * Neighbours that are fused into one dispatch, and neighbours that must not be. conformance.test.ts checks the kernels'
 * results.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Dispatch } from "../../../../kernels/wgsl/dispatch.ts";
import { fuse } from "../../../../kernels/wgsl/fuse.ts";
import { lower } from "../../../../kernels/wgsl/lower.ts";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import type { Program } from "../../../../src/engine/program/backend.ts";
import type { Step } from "../../../../src/engine/program/step.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../../src/engine/formats/files/write.ts";
import { makeModel } from "../../architectures/models.ts";
import { makeWeightBox } from "../../../conformance/weights.ts";
import { makeRng } from "../../../../src/engine/text/rng.ts";

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-fuse-"))));
afterAll(() => rm(folder, { recursive: true }));

const whole = {
  ctxLen: 64,
  piecesOf: (weight: { tensorRows: number }) => [{ index: 0, first: 0, count: weight.tensorRows }],
};

async function dispatchesOf(name: string, isGemm: boolean): Promise<Dispatch[]> {
  const path = join(folder, `${name}.gguf`);
  await writeGguf(path, makeModel(name));
  const gguf = openGguf(path);
  try {
    const { steps, states, logits }: Program = loadProgram(gguf);
    return fuse(lower(steps, { ...whole, isGemm }), [states.name, logits!.name]);
  } finally {
    gguf.close();
  }
}

/** Kernels from one attention to the next, where each sequence has one row: a layer's worth. */
function layerOf(all: readonly Dispatch[]): string[] {
  const dispatches = all.filter(({ grid }) => !grid.repeats);
  const at = dispatches.flatMap(({ kernel }, i) => (/attention(_tile)?$/.test(kernel) ? [i] : []));
  return dispatches.slice(at[0], at[1]).map(({ kernel }) => kernel);
}

test("a llama layer takes five dispatches at decode", async () => {
  expect(layerOf(await dispatchesOf("llama", false))).toEqual([
    "rope_attention",
    "linear",
    "gated_linear",
    "linear",
    "linear_3",
  ]);
});

test("the keys of several rows of a sequence are in the cache before any of these rows attends", async () => {
  const dispatches = await dispatchesOf("llama", false);
  const [at] = dispatches.flatMap(({ kernel }, i) => (kernel === "rope_attention" ? [i] : []));
  expect(dispatches[at! - 1]).toMatchObject({ kernel: "rope_store", grid: { repeats: true } });
});

test("a prompt's layer runs each product in a dispatch of its own, with the addition to it", async () => {
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
  return fuse(lower(steps, { ...whole, isGemm: false }), results).map(({ kernel }) => kernel);
}

test("a product fuses with the sum after it on either side, with a factor only on the product", () => {
  expect(kernelsOf([{ op: "add", out: z, a: x, b: y, scale: 0.5 }])).toEqual(["embed", "linear"]);
  expect(kernelsOf([{ op: "add", out: z, a: y, b: x, scale: 1 }])).toEqual(["embed", "linear"]);
  expect(kernelsOf([{ op: "add", out: z, a: y, b: x, scale: 0.5 }])).toEqual(["embed", "linear", "add"]);
});

test("a product that another step reads, or that is a result, does not fuse", () => {
  const add: Step = { op: "add", out: z, a: x, b: y, scale: 1 };
  expect(kernelsOf([add, { op: "add", out: z, a: z, b: y, scale: 1 }])).toEqual(["embed", "linear", "add", "add"]);
  expect(kernelsOf([add], ["z", "y"])).toEqual(["embed", "linear", "add"]);
  expect(kernelsOf([{ op: "add", out: z, a: y, b: y, scale: 1 }])).toEqual(["embed", "linear", "add"]);
});

test("a norm fuses into the products that read it, unless another step reads it or its source changes before", () => {
  const { vector } = makeWeightBox("norm", makeRng(2));
  const norm: Step = { op: "rmsNorm", out: y, x, w: vector(32, { mean: 1 }), eps: 1e-5 };
  const { matrix } = makeWeightBox("matrices", makeRng(3));
  const product = (out: typeof z): Step => ({ op: "linear", out, x: y, w: matrix({ inDim: 32, outDim: 32 }) });
  const start = ["embed", "linear"];
  const u = { name: "u", dim: 32 };
  expect(kernelsOf([norm, product(z)])).toEqual([...start, "linear"]);
  expect(kernelsOf([norm, product(z)], ["z", "y"])).toEqual([...start, "rms_norm", "linear"]);
  const add: Step = { op: "add", out: u, a: y, b: z, scale: 1 };
  expect(kernelsOf([norm, product(z), add], ["u"])).toEqual([...start, "rms_norm", "linear"]);
  expect(kernelsOf([norm, product(z), product(u)], ["z", "u"])).toEqual([...start, "linear", "linear"]);
  const scaled: Step = { op: "scale", x, by: 2 };
  const between = [norm, product(z), scaled, product(u)];
  expect(kernelsOf(between, ["z", "u"])).toEqual([...start, "rms_norm", "linear", "scale", "linear"]);
});

test("queries and keys that rotate from a later dimension do so before attention", () => {
  const base = { base: 1e4, rotaryDim: 8, style: "norm", freqScale: 1, extFactor: 0, attnFactor: 1 } as const;
  const rope = { ...base, betaFast: 32, betaSlow: 1, ctxLenOrig: 64 };
  const heads = { layer: 0, nHeads: 2, nKvHeads: 2, headDim: 16, scale: 1, window: 0, softCap: 0, rope };
  const attention = (at: number): Step[] => [
    ...[x, y].map((each): Step => ({ op: "rope", x: each, heads: 2, headDim: 16, rope, at })),
    { op: "attention", out: z, q: x, k: y, v: y, ...heads },
  ];
  expect(kernelsOf(attention(0))).toEqual(["embed", "linear", "rope_store", "rope_attention"]);
  expect(kernelsOf(attention(8))).toEqual(["embed", "linear", "rope", "rope", "store_kv", "attention"]);
});

test("an MLP beside experts shares the dispatch of their gates", async () => {
  const layer = layerOf(await dispatchesOf("granitemoe", false));
  const experts = ["linear", "linear", "moe_route", "moe_gated_shared", "linear", "moe_down"];
  expect(layer).toEqual(["rope_attention", ...experts, "linear_3"]);
});

test("attention with sinks rotates its queries and keys itself, and one dispatch chooses experts with biases", async () => {
  const layer = layerOf(await dispatchesOf("gpt-oss", false));
  expect(layer).toEqual(["rope_attention", "linear", "linear", "moe_route", "moe_gated", "moe_down", "linear_3"]);
});
