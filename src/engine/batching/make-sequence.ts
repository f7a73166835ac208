/**
 * Turns a request into a waiting sequence: lays out its prompt, cuts it to the context, creates its sampler, and sets
 * its limits.
 */
import { AppError } from "../../base/index.ts";
import type { GrammarMatcher } from "../text/sampling/grammar.ts";
import type { makeBreakers } from "../text/sampling/dry-breakers.ts";
import { makeSampler } from "../text/sampling/sampler.ts";
import type { Tokenizer } from "../text/tokenizer/tokenizer.ts";
import type { makeAnswerTexts } from "./answer-text.ts";
import { answerRoom, keptTokens, tooLong, truncatePrompt } from "./context.ts";
import type { Layout } from "./prompt.ts";
import { makePromptScores } from "./prompt-logprobs.ts";
import type { Sequence, SequenceRequest } from "./sequence.ts";

/** An unlimited answer ends after this many context lengths. */
const PREDICT_MAX_CONTEXTS = 10;

interface Parts {
  readonly ctxLen: number;
  readonly vocabSize: number;
  readonly tokenizer: Tokenizer;
  readonly grammar: GrammarMatcher | undefined;
  readonly answerText: ReturnType<typeof makeAnswerTexts>;
  readonly breakers: ReturnType<typeof makeBreakers>;
  /** Tokens that are never chosen; default: the tokenizer's. */
  readonly suppressed?: Int32Array;
}

/**
 * Throws `bad_request` if the prompt is empty, if it must be kept whole and is too long, or if its tokens have no
 * log-probabilities.
 */
export function makeSequence(
  request: SequenceRequest,
  { ids: prompt, keys, media }: Layout,
  { ctxLen, vocabSize, tokenizer, grammar, answerText, breakers, suppressed = tokenizer.suppressed }: Parts,
): Sequence {
  const { options, promptLogprobs: count } = request;
  if (prompt.length === 0) throw new AppError("bad_request", "the prompt has no tokens");
  if (request.read && count !== undefined)
    throw new AppError("bad_request", "this model does not support logprobs of a prompt: its encoder reads it at once");
  const startsWithBos = tokenizer.bos !== undefined && prompt[0] === tokenizer.bos;
  const keep = keptTokens(options.num_keep, { promptLen: prompt.length, ctxLen, startsWithBos });
  const mayCut = request.shift && (request.truncate ?? true) && media.length === 0 && count === undefined;
  if (prompt.length >= ctxLen && !mayCut) throw tooLong(prompt.length, ctxLen);
  const room = answerRoom({ ctxLen, numPredict: options.num_predict });
  const tokens = truncatePrompt(prompt, { ctxLen, keep, room });
  const unlimited = options.num_predict < 0 || options.num_predict > PREDICT_MAX_CONTEXTS * ctxLen;
  const sampler = makeSampler(options, {
    vocabSize,
    ctxLen,
    suppressed: options.ignore_eos
      ? Int32Array.from(new Set([...suppressed, ...tokenizer.endOfGeneration]))
      : suppressed,
    ...(options.dry_multiplier === 0 ? {} : { breakers: breakers(options.dry_sequence_breakers) }),
    ...(tokenizer.newlineId === undefined ? {} : { newlineId: tokenizer.newlineId }),
  });
  for (const token of tokens) if (token >= 0) sampler.accept(token);
  return {
    id: request.id,
    request,
    sampler,
    grammar,
    text: answerText({ stops: options.stop, visible: request.visible, keepsEnd: request.endLogprobs }),
    scores: count === undefined ? undefined : makePromptScores({ prompt: tokens, count, vocabSize, tokenizer }),
    tokens: tokens.length < prompt.length ? Array.from(tokens) : keys.slice(),
    prompt: tokens,
    media,
    keep,
    predictMax: unlimited ? PREDICT_MAX_CONTEXTS * ctxLen : options.num_predict,
    generated: [],
    slot: undefined,
    cached: 0,
    reused: 0,
    due: 0,
    cancelled: false,
    truncated: tokens.length < prompt.length || request.wasCut === true,
    stopSequence: undefined,
    promptEvalNs: request.read?.evalNs ?? 0,
    firstTokenAtNs: 0,
  };
}
