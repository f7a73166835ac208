/**
 * The truncation samplers. All take and leave sorted candidates, at least one. The formulas are llama.cpp's:
 * `src/llama-sampling.cpp`, and for tail-free `llama_sampler_tail_free` of its releases before b4150 (2024-11), which
 * dropped it.
 */
import { truncate, type Candidates } from "./candidates.ts";

/** A sum of curvature below this counts as flat (llama.cpp). */
const FLAT_SUM = 1e-6;

/**
 * Tail-free sampling: cuts where the running share of |second derivative| of the sorted probabilities passes z. z ≥ 1:
 * off. (P. Bricken, "Tail Free Sampling", 2019.)
 */
export function tailFree(c: Candidates, z: number): void {
  if (z >= 1 || c.length <= 2) return;
  const count = c.length - 2;
  let total = 0;
  for (let i = 0; i < count; i++) total += curvature(c, i);
  const flat = total <= FLAT_SUM;
  let seen = 0;
  for (let i = 0; i < count; i++) {
    seen += flat ? 1 / count : curvature(c, i) / total;
    if (seen > z && i >= 1) return truncate(c, i);
  }
}

function curvature({ weights, sum }: Candidates, i: number): number {
  return Math.abs(weights[i]! - 2 * weights[i + 1]! + weights[i + 2]!) / sum;
}

/**
 * Locally typical sampling: the tokens whose surprise is nearest to the entropy, until their share passes p. p ≥ 1:
 * off. (arXiv:2202.00666.) Surprise grows along sorted candidates, so these tokens are a window that grows in both
 * directions.
 */
export function typical(c: Candidates, p: number): void {
  if (p >= 1) return;
  const { weights, sum } = c;
  const logSum = Math.log(sum);
  let entropy = 0;
  for (let i = 0; i < c.length; i++) {
    if (weights[i]! > 0) entropy += (weights[i]! / sum) * (logSum - Math.log(weights[i]!));
  }
  let end = 0; // first token more surprising than the entropy; the window is [start, end)
  while (end < c.length && logSum - Math.log(weights[end]!) < entropy) end++;
  let start = end;
  for (let seen = 0; seen <= p * sum && (start > 0 || end < c.length);) {
    const left = start > 0 ? Math.abs(logSum - Math.log(weights[start - 1]!) - entropy) : Infinity;
    const right = end < c.length ? Math.abs(logSum - Math.log(weights[end]!) - entropy) : Infinity;
    seen += start > 0 && left <= right ? weights[--start]! : weights[end++]!;
  }
  c.ids.copyWithin(0, start, end);
  c.logits.copyWithin(0, start, end);
  c.weights.copyWithin(0, start, end);
  truncate(c, end - start);
}

/** Nucleus sampling: the likeliest tokens until their share reaches p. p ≥ 1: off. (arXiv:1904.09751.) */
export function topP(c: Candidates, p: number): void {
  if (p >= 1) return;
  let seen = 0;
  for (let i = 0; i < c.length; i++) {
    seen += c.weights[i]!;
    if (seen >= p * c.sum) return truncate(c, i + 1);
  }
  truncate(c, c.length); // makes `sum` the candidates' sum
}

/** Tokens at least p times as likely as the likeliest. p ≤ 0: off. (arXiv:2407.01082.) */
export function minP(c: Candidates, p: number): void {
  if (p <= 0) return;
  const least = p * c.weights[0]!;
  let n = 1;
  while (n < c.length && c.weights[n]! >= least) n++;
  truncate(c, n);
}
