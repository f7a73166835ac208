/** Requests to the engine and its answers. This file loads no reader of models. */
export { audioFormat, isAudio } from "./audio/format.ts";
export type { SpeechSegment, SpeechTask } from "./audio/whisper/transcriber.ts";
export type { AdapterChoice } from "./batching/adapter-set.ts";
export type { ChosenLogprob, TokenLogprob } from "./batching/answer-text.ts";
export type { EmbedEvent } from "./batching/embedder.ts";
export type { EngineInfo } from "./batching/engine-info.ts";
export { addStates, normalized, poolingOf, RANK, statedPooling } from "./batching/pooling.ts";
export type { Media, PromptSegment } from "./batching/prompt.ts";
export type { PromptLogprob } from "./batching/prompt-logprobs.ts";
export type { AnswerSettings, SequenceEvent } from "./batching/sequence.ts";
export type { Backend, Program, Session, StreamedCounts } from "./program/backend.ts";
export { DIFFUSION_ARCHS } from "./program/diffusion.ts";
export {
  LOADED_TEMPLATE,
  type InputMessage,
  type EmbedMessage,
  type Ending,
  type FromRunner,
  type GenerateMessage,
  type LoadMessage,
  type PromptInput,
  type Reply,
  type SpeechEvent,
  type TemplateChoice,
  type TemplateReply,
  type ToRunner,
  type TranscribeMessage,
} from "./runner/messages.ts";
export type { AnswerGrammar } from "./text/sampling/answer-grammar.ts";
export type { LazyGrammar } from "./text/sampling/lazy-grammar.ts";
export { parseLogitBias, type LogitBias } from "./text/sampling/logit-bias.ts";
export {
  SAMPLING_DEFAULTS,
  parseOptions,
  type LoadingOptions,
  type Options,
  type SamplingOptions,
} from "./text/sampling/options.ts";
export { DEFAULT_ORDER } from "./text/sampling/sampler-order.ts";
export { literal, negatedClass, union } from "./text/sampling/schema/char-set.ts";
export { schemaGrammar, valueExpression } from "./text/sampling/schema/compile.ts";
export { repeat } from "./text/sampling/schema/budget.ts";
export { ANNOTATIONS } from "./text/sampling/schema/conditions.ts";
export { FORMATS } from "./text/sampling/schema/formats.ts";
export { DATA, withoutNulls } from "./text/sampling/schema/nulls.ts";
export { MAPS, TOO_DEEP, checkSize, targetOf, tooDeepAt } from "./text/sampling/schema/read.ts";
export { patternGrammar } from "./text/sampling/schema/regex.ts";
export { countedGrammar } from "./text/sampling/schema/strings.ts";
export { add, choice, define, makeRules, reserve, rulesOf, use, type Rules } from "./text/sampling/schema/rules.ts";
export type { PromptMessage, PromptTool as Tool, PromptToolCall as ToolCall } from "./text/template/messages.ts";
export { PARSERS, RENDERERS, namesFor, rendererOf } from "./text/template/named.ts";
export { forgetsThoughts, withoutOldThoughts } from "./text/template/old-thoughts.ts";
export type { ThinkingTags } from "./text/template/thinking.ts";
