/**
 * The truncation samplers. All of them read sorted candidates and keep at least one, in order. The formulas are
 * llama.cpp's: `src/llama-sampling.cpp`, and for tail-free `llama_sampler_tail_free` of its releases before b4150
 * (2024-11), which dropped it.
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
 * Locally typical sampling: the tokens whose surprise is nearest to the entropy, until their probability exceeds p and
 * there are at least `keep`. p ≥ 1: off. (arXiv:2202.00666.) Surprise grows along sorted candidates, so these tokens
 * are a window that grows in both directions.
 */
export function typical(c: Candidates, p: number, keep = 0): void {
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
  for (let seen = 0; (seen <= p * sum || end - start < keep) && (start > 0 || end < c.length);) {
    const left = start > 0 ? Math.abs(logSum - Math.log(weights[start - 1]!) - entropy) : Infinity;
    const right = end < c.length ? Math.abs(logSum - Math.log(weights[end]!) - entropy) : Infinity;
    seen += start > 0 && left <= right ? weights[--start]! : weights[end++]!;
  }
  c.ids.copyWithin(0, start, end);
  c.logits.copyWithin(0, start, end);
  c.weights.copyWithin(0, start, end);
  truncate(c, end - start);
}

/**
 * Nucleus sampling: the likeliest tokens until their probability reaches p, at least `keep`. p ≥ 1: off.
 * (arXiv:1904.09751.)
 */
export function topP(c: Candidates, p: number, keep = 0): void {
  if (p >= 1) return;
  let seen = 0;
  for (let i = 0; i < c.length; i++) {
    seen += c.weights[i]!;
    if (seen >= p * c.sum && i + 1 >= keep) return truncate(c, i + 1);
  }
  truncate(c, c.length); // makes `sum` the candidates' sum
}

/** Tokens at least p times as likely as the likeliest, at least `keep`. p ≤ 0: off. (arXiv:2407.01082.) */
export function minP(c: Candidates, p: number, keep = 0): void {
  if (p <= 0) return;
  const least = p * c.weights[0]!;
  let n = 1;
  while (n < c.length && (c.weights[n]! >= least || n < keep)) n++;
  truncate(c, n);
}

/**
 * Top-n-sigma: the smallest logit within n standard deviations of the largest; masked logits, −∞, are ignored.
 * (arXiv:2411.07641.)
 */
export function sigmaCutoff(logits: ArrayLike<number>, n: number, length = logits.length): number {
  let [count, sum, max] = [0, 0, -Infinity];
  for (let i = 0; i < length; i++) {
    const logit = logits[i]!;
    if (logit === -Infinity) continue;
    count++;
    sum += logit;
    if (logit > max) max = logit;
  }
  let squares = 0;
  for (let i = 0; i < length; i++) {
    if (logits[i] !== -Infinity) squares += (logits[i]! - sum / count) ** 2;
  }
  return max - n * Math.sqrt(squares / count);
}

/**
 * Exclude top choices: drops all tokens of at least this probability except the last of them; at least `keep` must
 * remain.
 */
export function xtc(c: Candidates, threshold: number, keep = 0): void {
  let total = 0;
  for (let i = 0; i < c.length; i++) total += c.weights[i]!;
  let last = 0;
  while (last + 1 < c.length && c.weights[last + 1]! >= threshold * total) last++;
  const end = c.length;
  if (last === 0 || c.weights[0]! < threshold * total || end - last < keep) return;
  c.ids.copyWithin(0, last, end);
  c.logits.copyWithin(0, last, end);
  c.weights.copyWithin(0, last, end);
  truncate(c, end - last);
}

/**
 * The temperature for candidates: higher if they are more even.
 * @param about.count of candidates, impossible ones included
 */
export function dynamicTemperature(
  c: Candidates,
  about: { temperature: number; range: number; exponent: number; count: number },
): number {
  const { temperature, range, exponent, count } = about;
  if (range <= 0 || count <= 1) return temperature;
  let total = 0;
  for (let i = 0; i < c.length; i++) total += c.weights[i]!;
  let entropy = 0;
  for (let i = 0; i < c.length; i++) {
    const p = c.weights[i]! / total;
    if (p > 0) entropy -= p * Math.log(p);
  }
  const least = Math.max(0, temperature - range);
  return Math.max(least + (temperature + range - least) * (entropy / Math.log(count)) ** exponent, 1e-6);
}
