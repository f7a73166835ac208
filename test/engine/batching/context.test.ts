import { expect, test } from "bun:test";
import fc from "fast-check";
import { answerRoom, truncatePrompt } from "../../../src/engine/batching/context.ts";

test("a cut prompt leaves room for num_predict tokens, or an eighth of the context, and at most half", () => {
  expect(answerRoom({ ctxLen: 4096, numPredict: -1 })).toBe(512);
  expect(answerRoom({ ctxLen: 4096, numPredict: 100 })).toBe(100);
  expect(answerRoom({ ctxLen: 4096, numPredict: 4000 })).toBe(2048);
  expect(answerRoom({ ctxLen: 4, numPredict: -2 })).toBe(1);
});

test("a cut prompt keeps its beginning and its end", () => {
  const prompt = Int32Array.from({ length: 5000 }, (_, i) => i);
  const cut = truncatePrompt(prompt, { ctxLen: 4096, keep: 4, room: 512 });
  expect(cut.length).toBe(4096 - 512);
  expect([...cut.subarray(0, 5), cut.at(-1)]).toEqual([0, 1, 2, 3, 5000 - (4096 - 512 - 4), 4999]);
  expect(truncatePrompt(prompt.subarray(0, 4095), { ctxLen: 4096, keep: 4, room: 512 }).length).toBe(4095);
});

test("a cut prompt is shorter than the context, and ends with the last token", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 4, max: 64 }),
      fc.nat(100),
      fc.nat(100),
      fc.nat(60),
      (ctxLen, more, predict, kept) => {
        const prompt = Int32Array.from({ length: ctxLen + more }, (_, i) => i);
        const keep = Math.min(kept, ctxLen - 4);
        const cut = truncatePrompt(prompt, { ctxLen, keep, room: answerRoom({ ctxLen, numPredict: predict }) });
        expect(cut.length).toBeLessThan(ctxLen);
        expect(cut.length).toBeGreaterThan(keep);
        expect(cut.at(-1)).toBe(ctxLen + more - 1);
        expect(cut.subarray(0, keep)).toEqual(prompt.subarray(0, keep));
      },
    ),
    { seed: 4, numRuns: 300 },
  );
});
