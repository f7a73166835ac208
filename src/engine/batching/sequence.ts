/**
 * One request inside the engine: its tokens, how many are cached, how the next one is sampled, and the text emitted so
 * far. The scheduler reads it; the engine moves it from waiting to prefill to decode to done.
 */
import type { Code } from "../../base/index.ts";
import type { GrammarMatcher } from "../text/sampling/grammar.ts";
import type { AnswerGrammar } from "../text/sampling/answer-grammar.ts";
import type { LazyGrammar } from "../text/sampling/lazy-grammar.ts";
import type { SamplingOptions } from "../text/sampling/options.ts";
import type { Sampler } from "../text/sampling/sampler.ts";
import type { AdapterChoice, AdapterSet } from "./adapter-set.ts";
import type { AnswerText, ChosenLogprob } from "./answer-text.ts";
import type { PlacedMedia, PromptSegment } from "./prompt.ts";
import type { PromptLogprob, PromptScores } from "./prompt-logprobs.ts";
import { forget, type Slot } from "./slots.ts";

export type FinishReason = "stop" | "length";

/** Times in integer nanoseconds. */
interface SequenceStatistics {
  readonly promptEvalCount: number;
  /** Prompt tokens that were cached already. */
  readonly promptCachedCount: number;
  readonly promptEvalNs: number;
  readonly evalCount: number;
  readonly evalNs: number;
}

export type SequenceEvent =
  /** The prompt was read: emitted with the first token, before its text. */
  | {
      readonly kind: "prompt";
      readonly id: number;
      readonly tokens: number;
      /** Prompt tokens that were cached already. */
      readonly cached: number;
      /** Nanoseconds of evaluation. */
      readonly evalNs: number;
      /** As in the request. */
      readonly end: string | undefined;
    }
  /** A part of the prompt was read: if requested, at the beginning and after each run. */
  | {
      readonly kind: "progress";
      readonly id: number;
      readonly tokens: number;
      readonly cached: number;
      /** Prompt tokens that are done, cached ones included. */
      readonly processed: number;
      readonly evalNs: number;
    }
  /** The next tokens of the prompt, if requested: all of them before the answer. */
  | { readonly kind: "promptLogprobs"; readonly id: number; readonly tokens: readonly PromptLogprob[] }
  | {
      readonly kind: "text";
      readonly id: number;
      readonly text: string;
      /** The tokens that this text completes, if requested. */
      readonly logprobs?: readonly ChosenLogprob[];
    }
  | {
      readonly kind: "done";
      readonly id: number;
      readonly reason: FinishReason;
      readonly statistics: SequenceStatistics;
      /** Ids of prompt and answer. */
      readonly tokens: Int32Array;
      /** Set if a part of the prompt was left out, or was dropped later to make room. */
      readonly truncated?: boolean;
      /** The stop string that ended the answer. */
      readonly stopSequence?: string;
    }
  | { readonly kind: "error"; readonly id: number; readonly code: Code; readonly message: string };

export interface AnswerSettings {
  readonly options: SamplingOptions;
  /** `"json"`: any JSON object; an object: a JSON schema. */
  readonly format?: "json" | Record<string, unknown>;
  /** Constrains the whole answer; then `format` is absent. */
  readonly grammar?: AnswerGrammar;
  /** Grammars of the calls that an answer without a format may contain. */
  readonly calls?: LazyGrammar;
  /** For a full context: true drops its middle and continues, false ends the answer. */
  readonly shift: boolean;
  /** For a prompt longer than the context: true (default) cuts it, false refuses it. */
  readonly truncate?: boolean;
  /** Number of alternatives per token; undefined: no log-probabilities. */
  readonly logprobs?: number;
  /** With `logprobs`, true: tokens of stop strings and the one that ends the answer have theirs, too. */
  readonly endLogprobs?: boolean;
  /** Number of alternatives per token of the prompt; undefined: no log-probabilities of them. */
  readonly promptLogprobs?: number;
  /** Control tokens that are shown as text; the others are silent. */
  readonly visible?: readonly string[];
  /** True: `progress` events tell how much of the prompt is read. */
  readonly reportsProgress?: boolean;
  /** Adapters that change the model for this answer; the model is loaded with them. */
  readonly adapters?: readonly AdapterChoice[];
}

/** A prompt that an encoder has read. */
export interface ReadPrompt {
  readonly ids: Int32Array;
  /** Nanoseconds. */
  readonly evalNs: number;
}

/** A request to continue a prompt. */
export interface SequenceRequest extends Omit<AnswerSettings, "adapters"> {
  readonly id: number;
  /** At least one row. */
  readonly prompt: readonly PromptSegment[];
  /** Set if the prompt's only row stands for these ids. */
  readonly read?: ReadPrompt;
  /** The end of the prompt's text, echoed once the prompt is read. */
  readonly promptEnd?: string;
  /** True if a part of the prompt was left out before the request was made. */
  readonly wasCut?: boolean;
  readonly adapters?: AdapterSet;
}

export interface Sequence {
  readonly id: number;
  readonly request: SequenceRequest;
  readonly sampler: Sampler;
  readonly grammar: GrammarMatcher | undefined;
  readonly text: AnswerText;
  /** Log-probabilities of the prompt; undefined: not requested. */
  readonly scores: PromptScores | undefined;
  /** Keys of the prompt (truncated to the context) and generated ids, without tokens that shifts have dropped. */
  tokens: number[];
  /** The evaluated ids of the request's prompt, after truncation; −1 for media rows. */
  readonly prompt: Int32Array;
  /** Media among `tokens`; a sequence with media is neither cut nor shifted. */
  readonly media: readonly PlacedMedia[];
  /** Leading tokens that a shift keeps. */
  readonly keep: number;
  /** Maximum generated tokens. */
  readonly predictMax: number;
  /** All generated ids, for the caller's `context`. */
  readonly generated: number[];
  slot: Slot | undefined;
  /** Leading tokens whose KV is in the slot. */
  cached: number;
  /** Prompt tokens that were in the slot before the sequence ran. */
  reused: number;
  /** The engine's count of prompt tokens at which this prompt would be done if nothing overtook it from now on. */
  due: number;
  cancelled: boolean;
  truncated: boolean;
  stopSequence: string | undefined;
  promptEvalNs: number;
  /** Time of the first sampled token; 0 before that. */
  firstTokenAtNs: number;
}

/** Returns whether a sequence must evaluate prompt tokens (or lost tokens) before it can decode. */
export const inPrefill = (sequence: Sequence): boolean =>
  sequence.tokens.length - sequence.cached > 1 || sequence.generated.length === 0;

/** Makes the sequence evaluate its tokens, prompt and answer so far, again from the start. */
export function startOver(sequence: Sequence): void {
  if (sequence.slot) forget(sequence.slot);
  sequence.cached = 0;
}

/** Tokens of the prompt, for counts. */
export const promptTokens = ({ request: { read }, prompt }: Sequence): number => read?.ids.length ?? prompt.length;

export function statisticsOf(sequence: Sequence, nowNs: number): SequenceStatistics {
  return {
    promptEvalCount: promptTokens(sequence),
    promptCachedCount: sequence.reused,
    promptEvalNs: Math.round(sequence.promptEvalNs),
    evalCount: sequence.generated.length,
    evalNs: sequence.firstTokenAtNs === 0 ? 0 : Math.round(nowNs - sequence.firstTokenAtNs),
  };
}

/**
 * Prompt and answer ids for the caller's `context`, without media and stop strings.
 * @param encode tokenizes the remaining text of a token that a stop string cut
 */
export function conversationOf(sequence: Sequence, encode: (text: string) => Int32Array): Int32Array {
  const { request, generated, stopSequence, text } = sequence;
  const prompt = request.read?.ids ?? sequence.prompt;
  const { count, rest } = stopSequence === undefined ? { count: generated.length, rest: "" } : text.shown(generated);
  const answer = [...generated.slice(0, count), ...(rest === "" ? [] : encode(rest))];
  return Int32Array.from([...prompt, ...answer].filter((id) => id >= 0));
}
