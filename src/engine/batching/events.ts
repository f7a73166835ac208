/** Makes the engine's events for a sequence. */
import { codeOf, messageOf } from "../../base/index.ts";
import type { AnswerPiece } from "./answer-text.ts";
import type { Tokenizer } from "../text/tokenizer/tokenizer.ts";
import {
  conversationOf,
  promptTokens,
  statisticsOf,
  type FinishReason,
  type Sequence,
  type SequenceEvent,
} from "./sequence.ts";

/** Adds a token's text, if it has any. */
export function say({ id }: Sequence, { text, logprobs }: AnswerPiece, events: SequenceEvent[]): void {
  if (text === "" && !logprobs) return;
  events.push({ kind: "text", id, text, ...(logprobs ? { logprobs } : {}) });
}

/** Reports how much of the prompt was read, and the log-probabilities of its tokens, if requested. */
export function tellProgress(sequence: Sequence, events: SequenceEvent[]): void {
  const { id, reused, cached, request, promptEvalNs, generated, scores } = sequence;
  const described = scores?.drain() ?? [];
  if (described.length > 0) events.push({ kind: "promptLogprobs", id, tokens: described });
  if (!request.reportsProgress || generated.length > 0) return;
  const tokens = promptTokens(sequence);
  const counts = { tokens, cached: reused, processed: request.read && cached > 0 ? tokens : cached };
  events.push({ kind: "progress", id, ...counts, evalNs: Math.round(promptEvalNs) });
}

export const promptEvent = (sequence: Sequence): SequenceEvent => ({
  kind: "prompt",
  id: sequence.id,
  tokens: promptTokens(sequence),
  cached: sequence.reused,
  evalNs: Math.round(sequence.promptEvalNs),
  end: sequence.request.promptEnd,
});

export function doneEvent(
  sequence: Sequence,
  { reason, nowNs, tokenizer }: { reason: FinishReason; nowNs: number; tokenizer: Tokenizer },
): SequenceEvent {
  const { id, stopSequence, truncated } = sequence;
  return {
    kind: "done",
    id,
    reason,
    statistics: statisticsOf(sequence, nowNs),
    tokens: conversationOf(sequence, (text) => tokenizer.encode(text, { addSpecial: false, parseSpecial: false })),
    ...(truncated ? { truncated } : {}),
    ...(stopSequence === undefined ? {} : { stopSequence }),
  };
}

export const failureOf = (id: number, error: unknown): SequenceEvent => ({
  kind: "error",
  id,
  code: codeOf(error),
  message: messageOf(error),
});
