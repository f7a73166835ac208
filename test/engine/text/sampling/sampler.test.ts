import { expect, test } from "bun:test";
import fc from "fast-check";
import { AppError } from "../../../../src/base/errors.ts";
import { makeRng } from "../../../../src/engine/text/rng.ts";
import { logSoftmaxTop } from "../../../../src/engine/text/sampling/logprobs.ts";
import { SAMPLING_DEFAULTS, type SamplingOptions } from "../../../../src/engine/text/sampling/options.ts";
import { applyMask, makeSampler, type Sampler } from "../../../../src/engine/text/sampling/sampler.ts";

/** Everything off: one draw from the softmax. */
const PLAIN: SamplingOptions = { ...SAMPLING_DEFAULTS, seed: 1, temperature: 1, top_k: 0, top_p: 1, repeat_last_n: 0 };

function samplerOf(options: Partial<SamplingOptions>, vocabSize: number, newlineId?: number): Sampler {
  return makeSampler(
    { ...PLAIN, ...options },
    { vocabSize, ctxLen: 64, ...(newlineId === undefined ? {} : { newlineId }) },
  );
}

/** Logits of a distribution. */
const logitsOf = (...p: number[]): Float32Array => Float32Array.from(p, Math.log);

/** Share of each id over many draws from the same logits. */
function shares(options: Partial<SamplingOptions>, logits: Float32Array, draws = 20_000): number[] {
  const sampler = samplerOf(options, logits.length);
  const counts = Array.from({ length: logits.length }, () => 0);
  for (let i = 0; i < draws; i++) counts[sampler.sample(logits.slice())]!++;
  return counts.map((count) => count / draws);
}

/**
 * Fails if observed shares are too far from expected ones: chi-square at p = 0.001 for up to seven degrees of freedom.
 */
function expectShares(observed: readonly number[], expected: readonly number[], draws = 20_000): void {
  let chi2 = 0;
  for (const [i, p] of expected.entries()) {
    if (p === 0) expect(observed[i]).toBe(0);
    else chi2 += (draws * (observed[i]! - p) ** 2) / p;
  }
  expect(chi2).toBeLessThan(24.3);
}

test("without other options, tokens are drawn with the softmax's probabilities", () => {
  expectShares(shares({}, logitsOf(0.5, 0.25, 0.15, 0.1)), [0.5, 0.25, 0.15, 0.1]);
});

test("biases are added first: they forbid a token, force one, or change its probability", () => {
  const logits = logitsOf(0.5, 0.25, 0.25);
  expectShares(shares({ logit_bias: { "0": -100 } }, logits), [0, 0.5, 0.5]);
  expectShares(shares({ logit_bias: { "1": Math.log(3) } }, logits), [1 / 3, 1 / 2, 1 / 6]);
  expectShares(shares({ logit_bias: { "2": 100 }, top_k: 1 }, logits), [0, 0, 1]);
  expect(samplerOf({ temperature: 0, logit_bias: { "2": 100 } }, 3).sample(logits.slice())).toBe(2);
  expect(samplerOf({ temperature: 0, mirostat: 2, logit_bias: { "2": 100 } }, 3).sample(logits.slice())).toBe(2);
});

test("mirostat replaces penalties and DRY, as in llama.cpp", () => {
  const logits = logitsOf(0.5, 0.3, 0.2);
  const penalized = { repeat_penalty: 4, presence_penalty: 3, dry_multiplier: 5, dry_allowed_length: 1, seed: 5 };
  for (const own of [{ mirostat: 1 }, { mirostat: 2 }, { mirostat: 2, temperature: 0 }] as const) {
    const [plain, other] = [samplerOf({ ...own, seed: 5 }, 3), samplerOf({ ...own, ...penalized }, 3)];
    for (let i = 0; i < 40; i++) {
      const id = plain.sample(logits.slice());
      expect(other.sample(logits.slice())).toBe(id);
      for (const sampler of [plain, other]) sampler.accept(id);
    }
  }
});

test("a sampler with biases requests all logits instead of the top k", () => {
  const limits = { k: 64, masked: 64 };
  expect(samplerOf({ temperature: 0 }, 3).topKRequest(limits)).toBeDefined();
  expect(samplerOf({ temperature: 0, logit_bias: { "1": 1 } }, 3).topKRequest(limits)).toBeUndefined();
});

test("a suppressed token is never drawn, with any options", () => {
  const [logits, vocabSize] = [logitsOf(0.5, 0.25, 0.25), 3];
  const always: Partial<SamplingOptions>[] = [
    { temperature: 0 },
    {},
    { top_k: 2 },
    { top_p: 0.9 },
    { mirostat: 1 },
    { mirostat: 2 },
    { logit_bias: { "0": 100 } },
    { repeat_penalty: 0.5, repeat_last_n: 4 },
  ];
  for (const options of always) {
    const parts = { vocabSize, ctxLen: 64, suppressed: Int32Array.of(0, 7) };
    const sampler = makeSampler({ ...PLAIN, ...options }, parts);
    const ahead = sampler.ahead();
    ahead.begin();
    for (let i = 0; i < 30; i++) {
      expect(sampler.sample(logits.slice())).not.toBe(0);
      expect(ahead.next(logits.slice())).not.toBe(0);
    }
    const onlyThat = Int32Array.of(1);
    expect(() => sampler.sample(logits.slice(), onlyThat)).toThrow("no token can follow");
  }
});

test("sampling ahead applies the biases", () => {
  const ahead = samplerOf({ temperature: 0, logit_bias: { "2": 100 } }, 3).ahead();
  ahead.begin();
  expect(ahead.next(logitsOf(0.5, 0.25, 0.25))).toBe(2);
});

test("a bias for an id outside the vocabulary is refused", () => {
  expect(() => samplerOf({ logit_bias: { "3": 1 } }, 3)).toThrow("logit_bias: expected ids below 3, got token 3");
});

test("top-k keeps the k likeliest tokens, the lower id among equals", () => {
  expectShares(shares({ top_k: 2 }, logitsOf(0.1, 0.6, 0.1, 0.2)), [0, 0.75, 0, 0.25]);
  expectShares(shares({ top_k: 2 }, logitsOf(0.2, 0.2, 0.2, 0.4)), [1 / 3, 0, 0, 2 / 3]);
});

test("top-p keeps the fewest tokens that reach its share, with and without top-k", () => {
  const logits = logitsOf(0.1, 0.4, 0.2, 0.3);
  for (const top_k of [0, 4]) {
    expectShares(shares({ top_p: 0.65, top_k }, logits), [0, 4 / 7, 0, 3 / 7]);
    expectShares(shares({ top_p: 0.75, top_k }, logits), [0, 4 / 9, 2 / 9, 3 / 9]);
    expectShares(shares({ top_p: 0, top_k }, logits), [0, 1, 0, 0]);
  }
});

test("min-p keeps tokens at least that share of the likeliest, with and without top-k", () => {
  const logits = logitsOf(0.05, 0.5, 0.15, 0.3);
  for (const top_k of [0, 4]) {
    expectShares(shares({ min_p: 0.25, top_k }, logits), [0, 0.5 / 0.95, 0.15 / 0.95, 0.3 / 0.95]);
    expectShares(shares({ min_p: 0.5, top_k }, logits), [0, 0.625, 0, 0.375]);
    expectShares(shares({ min_p: 2, top_k }, logits), [0, 1, 0, 0]);
  }
});

test("tail-free cuts where the curvature's share passes z", () => {
  // p: .4 .3 .15 .1 .05; first differences .1 .15 .05 .05; second .05 .1 0, normalised 1/3 2/3 0
  const logits = logitsOf(0.4, 0.3, 0.15, 0.1, 0.05);
  expectShares(shares({ tfs_z: 0.9 }, logits), [1, 0, 0, 0, 0]); // 1/3 + 2/3 > 0.9 at the second: one stays
  const steep = logitsOf(0.4, 0.3, 0.2, 0.07, 0.03); // second differences 0 .03 .09: shares 0 1/4 3/4
  expectShares(shares({ tfs_z: 0.5 }, steep), [4 / 7, 3 / 7, 0, 0, 0]);
});

test("typical-p keeps the tokens whose surprise is nearest to the entropy", () => {
  // entropy 1.28 nats; surprises .69 1.39 1.90 2.30: nearest is the second, then the first, then the third
  const logits = logitsOf(0.5, 0.25, 0.15, 0.1);
  expectShares(shares({ typical_p: 0.2 }, logits), [0, 1, 0, 0]);
  expectShares(shares({ typical_p: 0.6 }, logits), [2 / 3, 1 / 3, 0, 0]);
  expectShares(shares({ typical_p: 0.8 }, logits), [5 / 9, 2.5 / 9, 1.5 / 9, 0]);
});

test("temperature flattens or sharpens the probabilities after the cuts", () => {
  const logits = logitsOf(0.64, 0.16, 0.2);
  expectShares(shares({ temperature: 2, top_k: 2 }, logits), [
    0.8 / (0.8 + Math.sqrt(0.2)),
    0,
    Math.sqrt(0.2) / (0.8 + Math.sqrt(0.2)),
  ]);
  expectShares(shares({ temperature: 0.5 }, logitsOf(0.5, 0.25, 0.25)), [2 / 3, 1 / 6, 1 / 6]);
  expect(shares({ temperature: 1e-30 }, logits, 100)).toEqual([1, 0, 0]);
});

test("samplers run in order: top-p uses the probabilities that top-k left, renormalised", () => {
  const logits = logitsOf(0.4, 0.3, 0.2, 0.1);
  // the share of the first token: 4/7 among the two, which is more than 0.55, and 0.4 among all four
  expectShares(shares({ top_k: 2, top_p: 0.55 }, logits), [1, 0, 0, 0]);
  expectShares(shares({ top_p: 0.55 }, logits), [4 / 7, 3 / 7, 0, 0]);
});

test("temperature 0 is argmax after penalties and mask, with the lowest id among equals", () => {
  const sampler = samplerOf({ temperature: 0, repeat_penalty: 2, repeat_last_n: 8 }, 5);
  const logits = (): Float32Array => Float32Array.of(1, 3, 3, 2, -0.5);
  expect(sampler.sample(logits())).toBe(1);
  sampler.accept(1);
  expect(sampler.sample(logits())).toBe(2);
  sampler.accept(2);
  expect(sampler.sample(logits())).toBe(3);
  expect(sampler.sample(logits(), Int32Array.of(0b10001))).toBe(0);
});

test("the repeat penalty divides positive logits and multiplies others, presence counts once, and frequency each time", () => {
  const sampler = samplerOf(
    { temperature: 0, repeat_penalty: 2, presence_penalty: 0.5, frequency_penalty: 0.25, repeat_last_n: 8 },
    4,
  );
  for (const id of [0, 1, 1, 2]) sampler.accept(id);
  const logits = Float32Array.of(4, 4, -1, 9);
  sampler.sample(logits);
  expect([...logits]).toEqual([4 / 2 - 0.75, 4 / 2 - 1, -2 - 0.75, 9]);
});

test("penalties look back over repeat_last_n tokens, −1 over the context, 0 over none", () => {
  const after = (repeat_last_n: number, newlineId?: number, penalize_newline = true): number[] => {
    const sampler = samplerOf({ temperature: 0, presence_penalty: 1, repeat_last_n, penalize_newline }, 4, newlineId);
    for (const id of [0, 1, 2]) sampler.accept(id);
    const logits = new Float32Array(4);
    sampler.sample(logits);
    return [...logits];
  };
  expect(after(2)).toEqual([0, -1, -1, 0]);
  expect(after(-1)).toEqual([-1, -1, -1, 0]);
  expect(after(0)).toEqual([0, 0, 0, 0]);
  expect(after(2, 1, false)).toEqual([0, 0, -1, 0]);
  expect(after(2, 1, true)).toEqual([0, -1, -1, 0]);
});

test("a token that left the penalty window and came back counts once", () => {
  const sampler = samplerOf({ temperature: 0, frequency_penalty: 1, repeat_last_n: 2 }, 3);
  for (const id of [0, 1, 0]) sampler.accept(id);
  const logits = new Float32Array(3);
  sampler.sample(logits);
  expect(Array.from(logits)).toEqual([-1, -1, 0]);
});

test("extreme penalties leave finite logits", () => {
  const sampler = samplerOf({ temperature: 0, repeat_penalty: 1e-30, frequency_penalty: -3e38, repeat_last_n: 8 }, 2);
  sampler.accept(0);
  const logits = Float32Array.of(1e30, 1);
  expect(sampler.sample(logits)).toBe(0);
  expect(Number.isFinite(logits[0]!)).toBe(true);
});

test("mirostat 2 draws only tokens below the surprise limit, which moves toward the target", () => {
  const logits = logitsOf(0.5, 0.25, 0.125, 0.0625, 0.0625);
  // mu starts at 2 · tau = 2.2 bits: surprises are 1 2 3 4 4, so the first two are left
  expectShares(shares({ mirostat: 2, mirostat_tau: 1.1, mirostat_eta: 0 }, logits), [2 / 3, 1 / 3, 0, 0, 0]);
  const wide = Float32Array.from({ length: 500 }, (_, i) => -0.02 * i);
  const observed = shares({ mirostat: 2, mirostat_tau: 3, mirostat_eta: 0.1, seed: 3 }, wide, 4000);
  const surprise = observed.reduce((sum, p) => (p > 0 ? sum - p * Math.log2(p) : sum), 0);
  expect(Math.abs(surprise - 3)).toBeLessThan(0.35);
});

test("mirostat 1 cuts at the rank of llama.cpp's formula", () => {
  // Zipf with exponent 2 over 1,000 tokens: s = 2; k = ((s−1)·2^mu / (1 − 1000^−1))^(1/2) with mu = 2·tau = 4 → 4.002
  const logits = Float32Array.from({ length: 1000 }, (_, i) => -2 * Math.log(i + 1));
  const observed = shares({ mirostat: 1, mirostat_tau: 2, mirostat_eta: 0 }, logits);
  const total = 1 + 1 / 4 + 1 / 9 + 1 / 16;
  expectShares(observed.slice(0, 6), [1 / total, 1 / 4 / total, 1 / 9 / total, 1 / 16 / total, 0, 0]);
  expect(shares({ mirostat: 1 }, new Float32Array(1), 10)).toEqual([1]);
});

const logitRow = fc.array(fc.double({ min: -30, max: 30, noNaN: true }), { minLength: 1, maxLength: 80 });

test("a drawn token is always in the mask and among the kept tokens", () => {
  const cut = fc.constantFrom<Partial<SamplingOptions>>(
    { top_k: 5 },
    { top_p: 0.5 },
    { min_p: 0.3 },
    { tfs_z: 0.5 },
    { typical_p: 0.5 },
    { mirostat: 1 },
    { mirostat: 2 },
    {},
  );
  fc.assert(
    fc.property(logitRow, cut, fc.integer({ min: 0, max: 2 ** 30 }), (row, options, seed) => {
      const rng = makeRng(seed);
      const mask = new Int32Array(Math.ceil(row.length / 32));
      for (let id = 0; id < row.length; id++)
        if (id === seed % row.length || rng.float() < 0.5) mask[id >> 5]! |= 1 << (id & 31);
      const sampler = samplerOf({ ...options, seed }, row.length);
      const id = sampler.sample(Float32Array.from(row), mask);
      expect((mask[id >> 5]! >>> (id & 31)) & 1).toBe(1);
      const better = row.filter(
        (logit, other) => ((mask[other >> 5]! >>> (other & 31)) & 1) === 1 && logit > row[id]!,
      ).length;
      if (options.top_k) expect(better).toBeLessThan(options.top_k);
      if (options.min_p)
        expect(Math.fround(row[id]!)).toBeGreaterThanOrEqual(Math.fround(masked(row, mask)) + Math.log(0.3) - 1e-3);
    }),
    { seed: 5, numRuns: 600 },
  );
});

const masked = (row: readonly number[], mask: Int32Array): number =>
  Math.max(...row.filter((_, id) => ((mask[id >> 5]! >>> (id & 31)) & 1) === 1));

test("top-p without top-k draws the same tokens as a full sort", () => {
  fc.assert(
    fc.property(logitRow, fc.double({ min: 0.01, max: 0.99, noNaN: true }), (row, top_p) => {
      const sorted = samplerOf({ top_p, top_k: row.length, seed: 9 }, row.length);
      const bucketed = samplerOf({ top_p, seed: 9 }, row.length);
      for (let i = 0; i < 5; i++) {
        expect(bucketed.sample(Float32Array.from(row))).toBe(sorted.sample(Float32Array.from(row)));
      }
    }),
    { seed: 6, numRuns: 400 },
  );
});

test("a large top-k and a small one draw the same tokens from many equal logits", () => {
  const logits = Float32Array.from({ length: 10_000 }, (_, i) => (i * 7919) % 50);
  const one = samplerOf({ top_k: 5000, top_p: 0.5, seed: 4 }, logits.length);
  const other = samplerOf({ top_k: 4096, top_p: 0.5, seed: 4 }, logits.length);
  for (let i = 0; i < 20; i++) expect(one.sample(logits.slice())).toBe(other.sample(logits.slice()));
});

test("a seed gives the same tokens whatever other samplers draw, and other seeds give others", () => {
  const logits = Float32Array.from({ length: 1000 }, (_, i) => Math.sin(i) * 2);
  const texts = (seed: number, disturb: boolean): string => {
    const sampler = samplerOf({ seed }, 1000);
    const noise = samplerOf({ seed: -1 }, 1000);
    return Array.from({ length: 20 }, () => {
      if (disturb) noise.sample(logits.slice());
      return sampler.sample(logits.slice());
    }).join();
  };
  expect(texts(5, true)).toBe(texts(5, false));
  expect(texts(6, false)).not.toBe(texts(5, false));
  expect(texts(-1, false)).not.toBe(texts(-1, false));
});

test.each([
  ["NaN", { top_k: 2 }],
  ["NaN", { temperature: 0 }],
  ["NaN", { top_p: 0.5 }],
  ["NaN", { mirostat: 2 as const }],
  ["Infinity", {}],
])("a logit of %s is an error of the runner (%j)", (value, options) => {
  const logits = Float32Array.of(0, 1, Number(value), -1);
  let error: unknown;
  try {
    samplerOf(options, 4).sample(logits);
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(AppError);
  expect(error).toMatchObject({ code: "runner", message: expect.stringContaining(`token 2 of 4 has ${value}`) });
});

test("an empty mask is an error, and ids beyond the mask are not allowed", () => {
  expect(() => samplerOf({}, 40).sample(new Float32Array(40), new Int32Array(2))).toThrow("no token can follow");
  const logits = new Float32Array(40);
  applyMask(logits, Int32Array.of(-1));
  expect(Array.from(logits.subarray(30, 34))).toEqual([0, 0, -Infinity, -Infinity]);
});

test("log-probabilities are those of the softmax, best first", () => {
  const got = logSoftmaxTop(logitsOf(1, 5, 4), 0, 2);
  expect(got.logprob).toBeCloseTo(Math.log(0.1), 5);
  expect(got.top.map((each) => each.id)).toEqual([1, 2]);
  expect(got.top[0]!.logprob).toBeCloseTo(Math.log(0.5), 5);
});
