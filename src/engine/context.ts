/**
 * What happens at the edge of the context window: how much of an over-long prompt is kept, and how many tokens a
 * context shift discards. Plain arithmetic; the same rules as the servers that clients know.
 */

/** Tokens at the front that survive truncation and shifts. */
export function keptTokens(
  numKeep: number,
  options: { promptLen: number; ctxLen: number; startsWithBos: boolean },
): number {
  const wanted = numKeep < 0 ? options.promptLen : numKeep + (options.startsWithBos ? 1 : 0);
  return Math.max(0, Math.min(wanted, options.promptLen, options.ctxLen - 4));
}

/**
 * Shortens a prompt that does not leave room for one new token: the first `keep` tokens and the tail stay, half of the
 * remaining window is freed.
 */
export function truncatePrompt(prompt: Int32Array, options: { ctxLen: number; keep: number }): Int32Array {
  const { ctxLen, keep } = options;
  if (prompt.length < ctxLen) return prompt;
  const length = ctxLen - Math.max(Math.floor((ctxLen - keep) / 2), 1);
  const tail = length - keep;
  const out = new Int32Array(length);
  out.set(prompt.subarray(0, keep));
  out.set(prompt.subarray(prompt.length - tail), keep);
  return out;
}

/** Tokens that a shift of a full window drops after the kept ones: half of what is not kept, at least one. */
export function discardedTokens(options: { length: number; keep: number }): number {
  return Math.max(1, Math.floor((options.length - options.keep) / 2));
}
