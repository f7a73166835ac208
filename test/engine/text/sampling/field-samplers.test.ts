/** Samplers as llama.cpp defines them: 20,000 draws against the distribution that its formulas give. */
import { expect, test } from "bun:test";
import { SAMPLING_DEFAULTS, type SamplingOptions } from "../../../../src/engine/text/sampling/options.ts";
import { makeSampler } from "../../../../src/engine/text/sampling/sampler.ts";

const LOGITS = [2.5, 2.3, 2, 1, 0.5, -1, -3, -8];
const DRAWS = 20_000;
const OFF = { ...SAMPLING_DEFAULTS, temperature: 1, top_k: 0, top_p: 1 };

function drawn(options: Partial<SamplingOptions>): number[] {
  const sampler = makeSampler({ ...OFF, seed: 7, ...options }, { vocabSize: LOGITS.length, ctxLen: 64 });
  const counts = LOGITS.map(() => 0);
  for (let i = 0; i < DRAWS; i++) counts[sampler.sample(Float32Array.from(LOGITS))]!++;
  return counts;
}

const softmax = (logits: readonly number[]): number[] => {
  const weights = logits.map((each) => Math.exp(each));
  const sum = weights.reduce((a, b) => a + b);
  return weights.map((each) => each / sum);
};

/** χ² with 7 degrees of freedom is above 24.3 once in a thousand. */
function expectDistribution(counts: readonly number[], probabilities: readonly number[]): void {
  let chi2 = 0;
  for (const [i, p] of probabilities.entries()) {
    if (p < 1e-4) expect(counts[i]!).toBeLessThan(20);
    else chi2 += (counts[i]! - p * DRAWS) ** 2 / (p * DRAWS);
  }
  expect(chi2).toBeLessThan(24.3);
}

const P = softmax(LOGITS);
const kept = (isKept: (i: number) => boolean): number[] =>
  softmax(LOGITS.map((logit, i) => (isKept(i) ? logit : -Infinity)));

test("with all samplers off, draws follow the softmax", () => expectDistribution(drawn({}), P));

test("top-n-sigma keeps logits within n standard deviations of the largest", () => {
  const mean = LOGITS.reduce((a, b) => a + b) / LOGITS.length;
  const sigma = Math.sqrt(LOGITS.reduce((sum, logit) => sum + (logit - mean) ** 2, 0) / LOGITS.length);
  const isKept = (i: number): boolean => LOGITS[i]! >= 2.5 - 0.5 * sigma;
  expect(LOGITS.filter((_, i) => isKept(i))).toHaveLength(4);
  expectDistribution(drawn({ top_n_sigma: 0.5 }), kept(isKept));
  expectDistribution(
    drawn({ top_n_sigma: 0.5, temperature: 2 }),
    softmax(LOGITS.map((l, i) => (isKept(i) ? l / 2 : -Infinity))),
  );
});

test("XTC drops all but the least likely of the tokens above its threshold, with its probability", () => {
  const dropped = kept((i) => i >= 2); // 0, 1 and 2 have at least 0.2
  expect(P.filter((p) => p >= 0.2)).toHaveLength(3);
  const mixed = P.map((p, i) => 0.7 * p + 0.3 * dropped[i]!);
  expectDistribution(drawn({ xtc_probability: 0.3, xtc_threshold: 0.2 }), mixed);
  expectDistribution(
    drawn({ xtc_probability: 1, xtc_threshold: 0.2, top_k: 5 }),
    kept((i) => i >= 2 && i < 5),
  );
  for (const off of [{ xtc_threshold: 0.6 }, { xtc_threshold: 0.33 }])
    expectDistribution(drawn({ xtc_probability: 1, ...off }), P);
});

test("a dynamic temperature grows with the entropy", () => {
  const entropy = -P.reduce((sum, p) => sum + p * Math.log(p), 0) / Math.log(P.length);
  for (const [range, exponent] of [
    [0.5, 1],
    [2, 2],
  ] as const) {
    const least = Math.max(0, 1 - range);
    const temperature = least + (1 + range - least) * entropy ** exponent;
    const options = { dynatemp_range: range, dynatemp_exponent: exponent };
    expectDistribution(drawn(options), softmax(LOGITS.map((logit) => logit / temperature)));
  }
});
