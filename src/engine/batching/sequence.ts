/**
 * One request inside the engine: its tokens, what is cached of them, how the next one is chosen, and what has been said
 * so far. The scheduler reads it, the engine moves it from waiting to prefill to decode to done.
 */
import type { Code } from "../../base/index.ts";
import type { GrammarMatcher } from "../text/sampling/grammar.ts";
import type { SamplingOptions } from "../text/sampling/options.ts";
import type { Sampler } from "../text/sampling/sampler.ts";
import type { AnswerText, ChosenToken } from "./answer-text.ts";
import type { PlacedMedia, PromptSegment } from "./prompt.ts";
import { forget, type Slot } from "./slots.ts";

export type FinishReason = "stop" | "length";

/** Times in integer nanoseconds. */
interface SequenceStatistics {
  readonly promptEvalCount: number;
  /** How many of them were in the cache already. */
  readonly promptCachedCount: number;
  readonly promptEvalNs: number;
  readonly evalCount: number;
  readonly evalNs: number;
}

export type SequenceEvent =
  /** The prompt was read: comes with the first token, before its text. */
  | {
      readonly kind: "prompt";
      readonly id: number;
      readonly tokens: number;
      /** How many of them were in the cache already. */
      readonly cached: number;
      /** As the request gave it. */
      readonly end: string | undefined;
    }
  | {
      readonly kind: "text";
      readonly id: number;
      readonly text: string;
      /** The tokens that this text completes, where they were asked for. */
      readonly logprobs?: readonly ChosenToken[];
    }
  | {
      readonly kind: "done";
      readonly id: number;
      readonly reason: FinishReason;
      readonly statistics: SequenceStatistics;
      /** Ids of prompt and answer. */
      readonly tokens: Int32Array;
      /** Part of the prompt was left out, or dropped later to make room. */
      readonly truncated?: boolean;
      /** The stop string that ended the answer. */
      readonly stopSequence?: string;
    }
  | { readonly kind: "error"; readonly id: number; readonly code: Code; readonly message: string };

/** How an answer is made. */
export interface AnswerSettings {
  readonly options: SamplingOptions;
  /** `"json"`: any JSON object; an object: a JSON schema. */
  readonly format?: "json" | Record<string, unknown>;
  /** Whether a full context drops its middle and goes on, or ends the answer. */
  readonly shift: boolean;
  /** Whether a prompt longer than the context is cut (the default) or refused. */
  readonly truncate?: boolean;
  /** How many alternatives to name for each token; undefined: no log-probabilities. */
  readonly logprobs?: number;
  /** Texts of control tokens that come out as text; the others give none. */
  readonly visible?: readonly string[];
}

/** What the engine is asked to continue. */
export interface SequenceRequest extends AnswerSettings {
  readonly id: number;
  /** At least one row. */
  readonly prompt: readonly PromptSegment[];
  /** The end of the prompt's text, told again when the prompt was read. */
  readonly promptEnd?: string;
  /** Part of the prompt was left out before it got here. */
  readonly wasCut?: boolean;
}

export interface Sequence {
  readonly id: number;
  readonly request: SequenceRequest;
  readonly sampler: Sampler;
  readonly grammar: GrammarMatcher | undefined;
  readonly text: AnswerText;
  /** Keys of the prompt (truncated to the context) and ids of what was generated, without what shifts have dropped. */
  tokens: number[];
  /** What was evaluated of the request's prompt: all of it, or what the context had room for; −1 for rows of media. */
  readonly prompt: Int32Array;
  /** Media among `tokens`; a sequence with some is neither cut nor shifted. */
  readonly media: readonly PlacedMedia[];
  /** Tokens at the front that a shift keeps. */
  readonly keep: number;
  /** Most tokens that may be generated. */
  readonly predictMax: number;
  /** All generated ids, for the caller's `context`. */
  readonly generated: number[];
  slot: Slot | undefined;
  /** Leading tokens whose KV is in the slot. */
  cached: number;
  /** How many of the prompt's tokens were there before it ran. */
  reused: number;
  /** Prompt tokens that the engine has evaluated once this prompt is done, if it goes first from here on. */
  due: number;
  cancelled: boolean;
  truncated: boolean;
  stopSequence: string | undefined;
  promptEvalNs: number;
  /** When the first token was chosen; 0 before that. */
  firstTokenAtNs: number;
}

/** Whether a sequence has prompt tokens (or tokens it lost) left to evaluate before it can decode. */
export const inPrefill = (sequence: Sequence): boolean =>
  sequence.tokens.length - sequence.cached > 1 || sequence.generated.length === 0;

/** Its tokens, prompt and answer so far, are evaluated again from the start. */
export function startOver(sequence: Sequence): void {
  if (sequence.slot) forget(sequence.slot);
  sequence.cached = 0;
}

/** What a finished sequence took. */
export function statisticsOf(sequence: Sequence, nowNs: number): SequenceStatistics {
  return {
    promptEvalCount: sequence.prompt.length,
    promptCachedCount: sequence.reused,
    promptEvalNs: Math.round(sequence.promptEvalNs),
    evalCount: sequence.generated.length,
    evalNs: sequence.firstTokenAtNs === 0 ? 0 : Math.round(nowNs - sequence.firstTokenAtNs),
  };
}

/**
 * Prompt and answer ids, for the caller's `context`, in which media and stop strings have no place.
 * @param encode of what is left of a token that a stop string cut
 */
export function conversationOf(sequence: Sequence, encode: (text: string) => Int32Array): Int32Array {
  const { prompt, generated, stopSequence, text } = sequence;
  const { count, rest } = stopSequence === undefined ? { count: generated.length, rest: "" } : text.shown(generated);
  const answer = [...generated.slice(0, count), ...(rest === "" ? [] : encode(rest))];
  return Int32Array.from([...prompt, ...answer].filter((id) => id >= 0));
}
