/**
 * Arithmetic at the limit of the context window: how much of an over-long prompt is kept, and how many tokens a context
 * shift discards.
 */
import { AppError } from "../../base/index.ts";

/** Tokens at the front that survive truncation and shifts. */
export function keptTokens(
  numKeep: number,
  options: { promptLen: number; ctxLen: number; startsWithBos: boolean },
): number {
  const wanted = numKeep < 0 ? options.promptLen : numKeep + (options.startsWithBos ? 1 : 0);
  return Math.max(0, Math.min(wanted, options.promptLen, options.ctxLen - 4));
}

/** Share of the window reserved for an answer of unlimited length if the prompt has to be cut. */
const ANSWER_SHARE = 1 / 8;

/**
 * Tokens that a cut prompt leaves for the answer: the answer's limit, else an eighth of the window; at least one, at
 * most half of the window. A prompt that fits is not cut, even if it leaves less.
 */
export function answerRoom({ ctxLen, numPredict }: { ctxLen: number; numPredict: number }): number {
  const wanted = numPredict > 0 ? numPredict : Math.floor(ctxLen * ANSWER_SHARE);
  return Math.max(1, Math.min(wanted, Math.floor(ctxLen / 2)));
}

/**
 * Shortens a prompt that leaves no room for a new token: keeps the first `keep` tokens and as much of the tail as
 * leaves `room` tokens of the window.
 */
export function truncatePrompt(
  prompt: Int32Array,
  options: { ctxLen: number; keep: number; room: number },
): Int32Array {
  const { ctxLen, keep, room } = options;
  if (prompt.length < ctxLen) return prompt;
  const length = Math.max(keep + 1, ctxLen - room);
  const out = new Int32Array(length);
  out.set(prompt.subarray(0, keep));
  out.set(prompt.subarray(prompt.length - (length - keep)), keep);
  return out;
}

/** Tokens that a shift of a full window drops after the kept ones: half of the others, at least one. */
export function discardedTokens(options: { length: number; keep: number }): number {
  return Math.max(1, Math.floor((options.length - options.keep) / 2));
}

/** Contains the words that clients look for, with the two numbers. */
export const tooLong = (promptLen: number, ctxLen: number): AppError =>
  new AppError(
    "bad_request",
    "the prompt is longer than the context length currently available to the model; shorten the prompt, adjust the " +
      "context length in settings, or use a model with a longer context length " +
      `(the prompt has ${promptLen} tokens, the context room for ${ctxLen - 1} and an answer)`,
  );
