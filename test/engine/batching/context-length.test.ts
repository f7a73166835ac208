import { expect, test } from "bun:test";
import type { Program, SlotBytes } from "../../../src/engine/program/backend.ts";
import { floatBytes } from "../../../src/engine/program/sequence-state.ts";
import { slotBytes } from "../../../src/engine/backends/simd/kv.ts";
import { f32 } from "../../../src/engine/formats/quant/f32.ts";
import { gpuCacheBytes } from "../../../src/engine/batching/gpu-kv-memory.ts";
import { defaultCtxLen, defaultSlots } from "../../../src/engine/batching/context-length.ts";

/** The part of a model that its cache depends on. */
const model = (step: object, layers: number) =>
  ({ steps: Array.from({ length: layers }, () => step) }) as unknown as Pick<Program, "steps">;
const eightB = model({ op: "attention", nKvHeads: 8, headDim: 128 }, 32);
const latent = model({ op: "latentAttention", nHeads: 128, headDim: 576, valueDim: 512 }, 61);
const recurrent = model({ op: "deltaRule", nHeads: 32, headDim: 128 }, 30);
const GIB = 2 ** 30;

test("a token takes keys and values of every layer, in the number format of the backend", () => {
  const values = 32 * 2 * 8 * 128;
  expect(floatBytes(eightB.steps)).toEqual({ perToken: values * 4, once: 0 });
  expect(slotBytes(eightB, { precise: true })).toEqual({ perToken: values * 4, once: 0 });
  expect(slotBytes(eightB, { precise: false })).toEqual({ perToken: values * 2, once: 0 });
});

test("latent attention takes one key for all heads, and its values again on the SIMD kernels", () => {
  expect(floatBytes(latent.steps).perToken).toBe(61 * 576 * 4);
  expect(slotBytes(latent, { precise: false }).perToken).toBe(61 * (576 + 512) * 2);
});

test("recurrent states take the same bytes for any length", () => {
  const once = 30 * 32 * 128 * 128 * 4;
  expect(floatBytes(recurrent.steps)).toEqual({ perToken: 0, once });
  expect(slotBytes(recurrent, { precise: false })).toEqual({ perToken: 0, once });
});

test("the context is the longest that fits for all slots, and never below 4096", () => {
  const bytes = floatBytes(eightB.steps);
  const ctxLen = (gib: number, slots = 1, onGpu = false) => defaultCtxLen(bytes, { bytes: gib * GIB, slots, onGpu });
  expect([0, 1, 2, 4, 8].map((gib) => ctxLen(gib))).toEqual([4096, 4096, 8192, 16_384, 32_768]);
  expect(ctxLen(8, 4)).toBe(8192);
  expect([ctxLen(1000), ctxLen(1000, 1, true), ctxLen(16, 1, true)]).toEqual([32_768, 262_144, 65_536]);
});

test("the fixed bytes of slots leave less memory for the context", () => {
  const bytes: SlotBytes = { perToken: 2 ** 17, once: GIB };
  const ctxLen = (gib: number, slots = 1) => defaultCtxLen(bytes, { bytes: gib * GIB, slots, onGpu: false });
  expect([2, 3, 5].map((gib) => ctxLen(gib))).toEqual([8192, 16_384, 32_768]);
  expect(ctxLen(6, 2)).toBe(16_384);
});

test("the context is not longer than a device can address for all slots, even below 4096", () => {
  const bytes: SlotBytes = { perToken: 2 ** 10, once: 0, tokensMax: 40_000 };
  const ctxLen = (slots: number) => defaultCtxLen(bytes, { bytes: 1000 * GIB, slots, onGpu: true });
  expect([ctxLen(1), ctxLen(4), ctxLen(16)]).toEqual([32_768, 8192, 2500]);
});

test("a GPU decodes as many sequences as fit with their context, from 2 to 16; a CPU four", () => {
  const bytes: SlotBytes = { perToken: 2 ** 17, once: 0, tokensMax: 400_000 };
  const slots = (gib: number | undefined, ctxLen = 8192, onGpu = true) =>
    defaultSlots(bytes, { bytes: gib === undefined ? undefined : gib * GIB, ctxLen, onGpu });
  expect([0, 1, 3, 5, 8, 80].map((gib) => slots(gib))).toEqual([2, 2, 3, 5, 8, 16]);
  expect([slots(undefined), slots(80, 8192, false), slots(80, 65_536)]).toEqual([4, 4, 6]);
  expect(defaultSlots({ ...bytes, slotsMax: 10 }, { bytes: 80 * GIB, ctxLen: 8192, onGpu: true })).toBe(10);
  expect(defaultSlots({ perToken: 0, once: 0 }, { bytes: GIB, ctxLen: 512, onGpu: true })).toBe(4);
});

test("a CPU has fewer slots if the fixed bytes of slots would take half of the memory", () => {
  const slots = (once: number, gib: number | undefined) =>
    defaultSlots({ perToken: 2 ** 17, once }, { bytes: gib && gib * GIB, ctxLen: 8192, onGpu: false });
  const image = 210 * 2 ** 20;
  expect([undefined, 0.1, 1, 1.5, 8].map((gib) => slots(image, gib))).toEqual([4, 1, 2, 3, 4]);
  expect(slots(0, 0.1)).toBe(4);
});

test("the cache on a GPU gets half of the memory beside the weights, without experts that move to the CPU", () => {
  const up = { name: "up", quant: f32, inDim: 4, outDim: 1, rowStart: 0, tensorRows: 1, experts: 2 };
  const moe = { op: "moe", up, down: { ...up, name: "down", experts: 3 }, router: { ...up, name: "router" } };
  const bytes = (step: object, memory: number, weights: number) => gpuCacheBytes(model(step, 1), { memory, weights });
  expect(bytes(moe, 240, 160)).toBe(40);
  expect(bytes(moe, 240, 250)).toBe((240 - (250 - 80)) / 2);
  expect(bytes(moe, 80, 85)).toBe(80 / 4);
  expect(bytes({ op: "scale" }, 240, 400)).toBe(0);
});
