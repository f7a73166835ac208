/**
 * The compiled quantizers: the same bytes as the quantizers in TypeScript, which are ggml's, for every type and finite
 * weight.
 */
import { expect, test } from "bun:test";
import { quantizeModule } from "../../../../src/engine/backends/host/quantize-module.ts";
import { quants, type QuantName } from "../../../../src/engine/formats/quant/index.ts";
import { QuantizeKernel } from "../../../../src/engine/formats/quant/kernel.ts";
import type { Quant } from "../../../../src/engine/formats/quant/quant.ts";
import { makeRng } from "../../../../src/engine/text/rng.ts";
import { varied } from "./varied.ts";

type Source = "f32" | "f16" | "bf16";
const TARGETS = "q4_0 q4_1 q5_0 q5_1 q8_0 q2_K q3_K q4_K q5_K q6_K".split(" ") as QuantName[];
const module = quantizeModule();
const kernelTest = test.skipIf(module === undefined); // a processor without SIMD in WebAssembly

function packed(quant: Quant, weights: Float32Array): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array((weights.length / quant.blockLen) * quant.blockBytes);
  quant.quantize!(weights, out);
  return out;
}

const inKernel = (kernel: QuantizeKernel, from: Source, to: QuantName, bytes: Uint8Array) =>
  kernel.quantize({ from, to, byteLength: bytes.length }, (view) => view.set(bytes));

/** Weights whose squares, sums or inverses are infinite or subnormal, and zeros of both signs. */
function extremes(): Float32Array {
  const rng = makeRng(34);
  const scales = [2 ** -140, 2 ** -125, 1e19, 3e38, 0];
  return Float32Array.from({ length: 256 * 60 }, (_, i) => {
    const value = 2 * rng.float() - 1;
    const kind = (i >> 8) % 6;
    return value * (scales[kind] ?? ((i & 255) < 128 ? 1e30 : 1e-38));
  });
}

kernelTest.each(TARGETS)("%s: all kinds of weights, also the largest and smallest, become the same bytes", (to) => {
  const kernel = new QuantizeKernel(module!);
  for (const from of ["f32", "f16", "bf16"] as const) {
    for (const weights of [varied(), extremes()]) {
      const finite = from === "f16" ? weights.map((weight) => Math.max(-65_504, Math.min(65_504, weight))) : weights;
      const bytes = packed(quants[from], finite);
      const read = new Float32Array(finite.length);
      quants[from].dequantize(bytes, read);
      const got = inKernel(kernel, from, to, bytes);
      const first = packed(quants[to], read).findIndex((byte, i) => byte !== (got as Uint8Array)[i]);
      expect(first, `${from}: the first byte that differs`).toBe(-1);
    }
  }
});

kernelTest("a job that ends within a unit reads nothing of the one before it", () => {
  const kernel = new QuantizeKernel(module!);
  for (const to of ["q4_0", "q8_0"] as const) {
    expect(inKernel(kernel, "f32", to, packed(quants.f32, varied().fill(NaN)))).toBe(0);
    const weights = varied().subarray(0, 256 + 96);
    expect(inKernel(kernel, "f32", to, packed(quants.f32, weights))).toEqual(packed(quants[to], weights));
  }
});

kernelTest("a weight that is not finite is named by its place, for every source", () => {
  const kernel = new QuantizeKernel(module!);
  for (const from of ["f32", "f16", "bf16"] as const) {
    for (const bad of [Infinity, -Infinity, NaN]) {
      const weights = varied().slice(0, 1024).fill(bad, 517, 519);
      expect(inKernel(kernel, from, "q4_K", packed(quants[from], weights)), `${from} ${bad}`).toBe(517);
    }
  }
});

kernelTest("other types are left to the code in TypeScript", () => {
  const kernel = new QuantizeKernel(module!);
  const has = (from: QuantName, to: QuantName): boolean => kernel.has(from, to);
  expect([has("f32", "f16"), has("q8_0", "q4_0"), has("bf16", "q6_K")]).toEqual([false, false, true]);
});
