/** Answers to generate requests: the stream of events, the whole answer, and the fields of the last object. */
import { AppError, assert } from "../../base/index.ts";
import type {
  ChatRequest,
  ChosenLogprob,
  CutCall,
  GenerateRequest,
  InferenceEvent,
  PromptLogprob,
  Statistics,
  ToolCall,
  Runtime,
} from "../../runtime/portable.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Exchange } from "../http/exchange.ts";
import { counter } from "../metrics/metered.ts";

/** An event about the prompt. */
export type ReportEvent = Extract<InferenceEvent, { kind: "prompt" | "progress" | "promptLogprobs" }>;

export type AnswerEvent = Exclude<InferenceEvent, ReportEvent>;

/** Transforms the events of an answer; made anew for each answer. */
export type Stage = (event: AnswerEvent) => readonly AnswerEvent[];

export type DoneEvent = Extract<InferenceEvent, { kind: "done" }>;

/** The fields of the last object: the reason of the end, and the statistics. */
export function doneFields({ reason, context, truncated, statistics }: DoneEvent): object {
  return {
    done: true,
    done_reason: reason,
    ...(context ? { context } : {}),
    ...(truncated ? { truncated } : {}),
    ...(statistics ? statisticsFields(statistics) : {}),
  };
}

/** Durations in nanoseconds. */
function statisticsFields(statistics: Statistics): object {
  return {
    total_duration: statistics.totalNs,
    load_duration: statistics.loadNs,
    prompt_eval_count: statistics.promptEvalCount,
    prompt_eval_duration: statistics.promptEvalNs,
    eval_count: statistics.evalCount,
    eval_duration: statistics.evalNs,
  };
}

/** Fields of a finished answer in the log line. */
function doneNotes({ reason, statistics }: DoneEvent): Record<string, unknown> {
  const counts = statistics && { prompt_eval_count: statistics.promptEvalCount, eval_count: statistics.evalCount };
  return { done_reason: reason, ...counts };
}

export interface Answering<R = never> {
  readonly note: Exchange["note"];
  /** Applied in order. */
  readonly stages?: readonly Stage[];
  /** Called before the first event. */
  readonly onPrompt?: (event: Extract<InferenceEvent, { kind: "prompt" }>) => void;
  /** Converts events about the prompt to events of the answer; absent: they are left out. */
  readonly report?: (event: ReportEvent) => R;
}

/** A model's answer to a request, counted in the metrics; ends with `done`, which adds its fields to the log line. */
export function answerEvents<R = never>(
  { runtime, metrics }: { readonly runtime: Runtime; readonly metrics: Metrics },
  request: ChatRequest | GenerateRequest,
  answering: Answering<R>,
): AsyncGenerator<AnswerEvent | R, void, void> {
  const events = "messages" in request ? runtime.chat(request) : runtime.generate(request);
  return staged(events, { ...answering, count: counter(metrics, request) });
}

/** Throws `runner` if `done` never comes. */
async function* staged<R>(
  events: AsyncGenerator<InferenceEvent, void, void>,
  { note, stages = [], onPrompt, report, count }: Answering<R> & { readonly count: (event: AnswerEvent) => void },
): AsyncGenerator<AnswerEvent | R, void, void> {
  let last: InferenceEvent["kind"] | undefined;
  for await (const event of events) {
    last = event.kind;
    if (event.kind === "prompt") onPrompt?.(event);
    if (event.kind === "prompt" || event.kind === "progress" || event.kind === "promptLogprobs") {
      if (report) yield report(event);
      continue;
    }
    if (event.kind === "done") note(doneNotes(event));
    count(event);
    let said: readonly AnswerEvent[] = [event];
    for (const stage of stages) said = said.flatMap(stage);
    for (const each of said) yield each;
  }
  if (last !== "done") throw new AppError("runner", "model runner has unexpectedly stopped");
}

export interface Answer {
  readonly text: string;
  readonly thinking: string;
  readonly calls: readonly ToolCall[];
  /** The last call, if the end of the answer cut it off. */
  readonly cutCall: CutCall | undefined;
  /** Empty unless requested. */
  readonly logprobs: readonly ChosenLogprob[];
  /** The tokens of the prompt; empty unless requested and reported. */
  readonly prompt: readonly PromptLogprob[];
  readonly done: DoneEvent;
}

/** Collects the events of an answer, which end with `done`. */
export async function collect(events: AsyncIterable<AnswerEvent | ReportEvent>): Promise<Answer> {
  let text = "";
  let thinking = "";
  let done: DoneEvent | undefined;
  let cutCall: CutCall | undefined;
  const calls: ToolCall[] = [];
  const logprobs: ChosenLogprob[] = [];
  const prompt: PromptLogprob[] = [];
  for await (const event of events) {
    if (event.kind === "done") done = event;
    else if (event.kind === "toolCall") calls.push(event.call);
    else if (event.kind === "cutCall") cutCall = event.call;
    else if (event.kind === "promptLogprobs") for (const each of event.tokens) prompt.push(each);
    else if (event.kind === "text" || event.kind === "thinking") {
      if (event.kind === "text") text += event.text;
      else thinking += event.text;
      logprobs.push(...(event.logprobs ?? []));
    }
  }
  assert(done, "an answer without its last event");
  return { text, thinking, calls, cutCall, logprobs, prompt, done };
}
