/**
 * Log-probabilities of a token and of the likeliest ones, from the model's raw logits (before penalties, masks and
 * temperature).
 */
import { makeCandidates, makeScratch, selectTop } from "./candidates.ts";

export interface TokenLogprob {
  readonly id: number;
  /** Natural logarithm of the probability; −∞ for an impossible token. */
  readonly logprob: number;
}

/** 1 for the likeliest token, 2 for the next one; equal logits share a rank. */
export function rankOf(logits: Float32Array, id: number): number {
  const own = logits[id]!;
  let rank = 1;
  for (let i = 0; i < logits.length; i++) if (logits[i]! > own) rank++;
  return rank;
}

/** The log-probability of `id`, and the n likeliest tokens, best first. Reads the logits only. */
export function logSoftmaxTop(
  logits: Float32Array,
  id: number,
  n: number,
): TokenLogprob & { readonly top: readonly TokenLogprob[] } {
  const c = makeCandidates();
  selectTop(c, logits, { k: Math.max(1, n), scratch: makeScratch() });
  const max = c.logits[0]!;
  let sum = 0;
  for (let i = 0; i < logits.length; i++) sum += Math.exp(logits[i]! - max);
  const logSum = max + Math.log(sum);
  const top: TokenLogprob[] = [];
  for (let i = 0; i < Math.min(n, c.length); i++) top.push({ id: c.ids[i]!, logprob: c.logits[i]! - logSum });
  return { id, logprob: logits[id]! - logSum, top };
}
