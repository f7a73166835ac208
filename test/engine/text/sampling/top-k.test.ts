/** Candidates instead of logits: the same tokens, draw after draw. backend/webgpu tests a GPU's candidates. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { SAMPLING_DEFAULTS, type SamplingOptions } from "../../../../src/engine/text/sampling/options.ts";
import { makeSampler, type Sampler } from "../../../../src/engine/text/sampling/sampler.ts";
import { arbitraryLogits, topKOf } from "./top-k.ts";

const LIMITS = { k: 128, masked: 256 };

const samplerOf = (
  options: Partial<SamplingOptions>,
  vocabSize: number,
  more: { newlineId?: number; suppressed?: Int32Array } = {},
): Sampler => makeSampler({ ...SAMPLING_DEFAULTS, seed: 7, ...options }, { vocabSize, ctxLen: 64, ...more });

const share = fc.double({ min: 0, max: 1.1, noNaN: true });
const factor = fc.double({ min: -2, max: 2, noNaN: true });
const options: fc.Arbitrary<Partial<SamplingOptions>> = fc.record({
  temperature: fc.constantFrom(0, 0.1, 0.8, 1, 3),
  top_k: fc.integer({ min: 1, max: 128 }),
  top_p: share,
  min_p: share,
  tfs_z: share,
  typical_p: share,
  repeat_last_n: fc.constantFrom(-1, 0, 1, 5, 64),
  repeat_penalty: fc.constantFrom(0, 0.5, 1, 1.1, 3),
  presence_penalty: factor,
  frequency_penalty: factor,
  penalize_newline: fc.boolean(),
});

const none = fc.constant(new Int32Array(0));

/** Both ways, token by token, each seeing the tokens chosen so far. */
function expectSame(
  logits: Float32Array,
  chosen: Partial<SamplingOptions>,
  prompt: readonly number[],
  suppressed: Int32Array,
): void {
  const more = { newlineId: 1, suppressed };
  const [all, few] = [0, 1].map(() => samplerOf(chosen, logits.length, more)) as [Sampler, Sampler];
  for (const id of prompt) for (const sampler of [all, few]) sampler.accept(id % logits.length);
  for (let i = 0; i < 8; i++) {
    const moved = logits.map((logit, id) => (id % 7 === i && logit > -Infinity ? -logit : logit));
    const request = few.topKRequest(LIMITS)!;
    const id = few.choose(topKOf(moved, request));
    expect(id).toBe(all.sample(moved.slice()));
    expect(suppressed.includes(id)).toBe(false);
    for (const sampler of [all, few]) sampler.accept(id);
  }
}

test("candidates give the same tokens as all logits, with any samplers behind top-k", () => {
  const logits = arbitraryLogits({ min: 1, max: 200 });
  const prompt = fc.array(fc.nat(300), { maxLength: 90 });
  fc.assert(fc.property(logits, options, prompt, none, expectSame), { numRuns: 500 });
});

test("a logit of −∞ is never chosen, from candidates or from all logits", () => {
  const logits = arbitraryLogits({ min: 5, max: 60 }).map((each) =>
    each.map((logit, id) => (id % 3 === 0 || id === 4 ? logit : -Infinity)),
  );
  fc.assert(fc.property(logits, options, fc.constant([]), none, expectSame), { numRuns: 200 });
});

test("suppressed tokens are never chosen, from candidates or from all logits", () => {
  const logits = arbitraryLogits({ min: 12, max: 200 }).map((each) => each.map((logit) => Math.max(logit, -1e30)));
  const ids = fc.uniqueArray(fc.nat(300), { minLength: 1, maxLength: 11 }).map((list) => Int32Array.from(list));
  const prompt = fc.array(fc.nat(300), { maxLength: 90 });
  fc.assert(fc.property(logits, options, prompt, ids, expectSame), { numRuns: 300 });
});

test("suppressed and penalized tokens are masked once each", () => {
  const suppressed = Int32Array.of(2, 9);
  const sampler = samplerOf({ presence_penalty: 1 }, 100, { suppressed });
  for (const id of [1, 2]) sampler.accept(id);
  expect([...sampler.topKRequest(LIMITS)!.masked].toSorted()).toEqual([1, 2, 9]);
  expect(sampler.topKRequest({ k: 128, masked: 2 })).toBeUndefined();
});

test("candidates are requested only if the other tokens cannot change the result", () => {
  const request = (each: Partial<SamplingOptions>) => samplerOf(each, 1000).topKRequest(LIMITS)?.k;
  expect(request({})).toBe(40);
  expect(request({ top_k: 128 })).toBe(128);
  expect(request({ top_k: 129 })).toBeUndefined();
  expect(request({ top_k: 0 })).toBeUndefined();
  expect(request({ mirostat: 1 })).toBeUndefined();
  expect(request({ mirostat: 2 })).toBeUndefined();
  expect(request({ mirostat: 2, temperature: 0 })).toBe(1);
  expect(request({ top_k: 0, temperature: 0 })).toBe(1);
  expect(samplerOf({ top_k: 0 }, 30).topKRequest(LIMITS)).toBeUndefined();
  expect(samplerOf({ top_k: 500 }, 30).topKRequest(LIMITS)?.k).toBe(30);
});

test("penalized tokens are masked once each, and too many of them request all logits", () => {
  const sampler = samplerOf({ presence_penalty: 1, repeat_last_n: 4, penalize_newline: false }, 100, { newlineId: 3 });
  for (const id of [9, 1, 2, 3, 2]) sampler.accept(id);
  expect([...sampler.topKRequest(LIMITS)!.masked].toSorted()).toEqual([1, 2]);
  expect(sampler.topKRequest({ k: 128, masked: 1 })).toBeUndefined();
  expect([...samplerOf({ repeat_last_n: 4 }, 100).topKRequest(LIMITS)!.masked]).toEqual([]);
});

test("unusable candidates give the errors of unusable logits", () => {
  const top = (...logits: number[]) => ({
    ids: Int32Array.from(logits.keys()),
    logits: Float32Array.from(logits),
  });
  expect(() => samplerOf({}, 3).choose(top(1, NaN))).toThrow("the model gave no usable logits");
  expect(() => samplerOf({ temperature: 0 }, 3).choose(top(Infinity))).toThrow("no usable logits");
  expect(() => samplerOf({}, 3).choose(top(-Infinity, -Infinity))).toThrow("no token can follow");
});
