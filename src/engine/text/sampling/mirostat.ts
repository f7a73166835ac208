/**
 * Mirostat: adapts the truncation so that the surprise of sampled tokens stays near a target (arXiv:2007.14966). From
 * `llama_sampler_mirostat` and `llama_sampler_mirostat_v2` of llama.cpp (`src/llama-sampling.cpp`).
 */
import type { Rng } from "../rng.ts";
import { argmax, draw, selectAbove, selectTop, truncate, type Candidates, type Scratch } from "./candidates.ts";

const SLOPE_TOKENS = 100; // `m` in llama.cpp: the number of likeliest tokens for fitting the tail's exponent

/**
 * `tau`: target surprise in bits; `eta`: learning rate of the cutoff. `mu` adapts from token to token and starts at 2 ·
 * tau.
 */
export interface Mirostat {
  readonly version: 1 | 2;
  readonly tau: number;
  readonly eta: number;
  mu: number;
}

/** Samples an id from logits that have their temperature already. */
export function drawMirostat(
  mirostat: Mirostat,
  parts: { candidates: Candidates; logits: Float32Array; scratch: Scratch; rng: Rng },
): number {
  const { candidates: c, logits, scratch } = parts;
  if (mirostat.version === 1) selectFitted(c, { mu: mirostat.mu, logits, scratch });
  else selectAbove(c, logits, { cutoff: surpriseCutoff(logits, mirostat.mu), scratch });
  const at = draw(c, parts.rng.float());
  const surprise = Math.log2(c.sum / c.weights[at]!);
  mirostat.mu -= mirostat.eta * (surprise - mirostat.tau);
  return c.ids[at]!;
}

/** The logit of a token with a surprise of `mu` bits, never above the largest. */
function surpriseCutoff(logits: Float32Array, mu: number): number {
  const max = logits[argmax(logits)]!;
  let sum = 0;
  for (let i = 0; i < logits.length; i++) sum += Math.exp(logits[i]! - max);
  return Math.min(max, max + Math.log(sum) - mu * Math.LN2);
}

/** Version 1: fits a Zipf exponent to the head of the distribution and cuts at the rank expected for `mu`. */
function selectFitted(c: Candidates, options: { mu: number; logits: Float32Array; scratch: Scratch }): void {
  const { mu, logits, scratch } = options;
  selectTop(c, logits, { k: SLOPE_TOKENS, scratch });
  let products = 0;
  let squares = 0;
  for (let i = 0; i + 1 < c.length; i++) {
    const t = Math.log((i + 2) / (i + 1));
    products += t * (c.logits[i]! - c.logits[i + 1]!); // log of the ratio of the two probabilities
    squares += t * t;
  }
  const k = rankFor({ exponent: products / squares, mu, vocabSize: logits.length });
  if (k <= c.length) truncate(c, k);
  else if (c.length === SLOPE_TOKENS) selectTop(c, logits, { k, scratch });
}

function rankFor(options: { exponent: number; mu: number; vocabSize: number }): number {
  const { exponent, mu, vocabSize } = options;
  const excess = exponent - 1;
  const k = ((excess * 2 ** mu) / (1 - vocabSize ** -excess)) ** (1 / exponent);
  if (Number.isNaN(k)) return vocabSize; // the head is flat, or a single token
  return Math.max(1, Math.min(vocabSize, Math.trunc(k)));
}
