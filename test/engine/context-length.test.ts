import { expect, test } from "bun:test";
import { defaultCtxLen, kvBytesPerToken } from "../../src/engine/context-length.ts";
import type { Program } from "../../src/backend/backend.ts";

/** As much of a model of 8 billion parameters as its KV cache depends on. */
const attention = { op: "attention", nKvHeads: 8, headDim: 128 };
const eightB = { steps: Array.from({ length: 32 }, () => attention) } as unknown as Pick<Program, "steps">;
const GIB = 2 ** 30;

test("a token keeps keys and values of every layer", () => {
  expect(kvBytesPerToken(eightB)).toBe(32 * 2 * 8 * 128 * 4);
});

test("the context is the longest whose cache fits for all slots, and never below 4096", () => {
  const ctxLen = (gib: number, slots = 1, onGpu = false) => defaultCtxLen(eightB, { bytes: gib * GIB, slots, onGpu });
  expect([0, 1, 2, 4, 8].map((gib) => ctxLen(gib))).toEqual([4096, 4096, 8192, 16_384, 32_768]);
  expect(ctxLen(8, 4)).toBe(8192);
  expect([ctxLen(1000), ctxLen(1000, 1, true), ctxLen(16, 1, true)]).toEqual([32_768, 262_144, 65_536]);
});
