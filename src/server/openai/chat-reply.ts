/** Events of an answer as a `chat.completion`, or as the frames of its chunks. */
import type { ChosenLogprob, CutCall, TokenLogprob, ToolCall } from "../../runtime/portable.ts";
import type { Answer, AnswerEvent, DoneEvent } from "../answers/answer.ts";
import { argumentsText, customInput } from "../answers/custom-tools.ts";
import type { Frame } from "../http/sse.ts";
import { choiceFrames, type Choices, type ChunkWriter } from "./choice-frames.ts";
import { collectAll, totalOf } from "./choices.ts";
import { promptLogprobsField } from "./legacy-logprobs.ts";
import { usageOf, type Head } from "./reply.ts";
import type { Reports } from "./settings.ts";
import { progressOf, Timer, timingsOf } from "./timings.ts";

export interface ChatReplyOptions {
  readonly head: Head;
  /** True if a last chunk has the usage. */
  readonly includeUsage: boolean;
  readonly wantsLogprobs: boolean;
  /** Number of alternatives in the field `prompt_logprobs`; undefined: no such field. */
  readonly promptLogprobs: number | undefined;
  readonly reports: Reports | undefined;
  /** Names of custom tools, whose calls are free text. */
  readonly customTools: ReadonlySet<string>;
  /** True if a call is sent as the old `function_call`, of which an answer has one. */
  readonly hasFunctions: boolean;
}

/** All events in one object. */
export async function completion(choices: Choices, options: ChatReplyOptions): Promise<object> {
  const answers = await collectAll(choices);
  const ends = answers.map(({ done }) => done);
  const { promptLogprobs: count } = options;
  return {
    object: "chat.completion",
    ...options.head,
    choices: answers.map((answer, index) => choiceOf(answer, index, options)),
    usage: usageOf(totalOf(ends, answers.length)),
    ...(count === undefined ? {} : { prompt_logprobs: promptLogprobsField(answers[0]?.prompt ?? [], count) }),
    ...timingsOf(ends),
  };
}

function choiceOf(answer: Answer, index: number, options: ChatReplyOptions): object {
  const { text, thinking, calls, cutCall, logprobs, done } = answer;
  const all = [...calls, ...(cutCall ? [cutCall] : [])];
  const message = {
    role: "assistant",
    content: all.length > 0 ? text.trim() : text, // blanks around a call are layout
    ...(thinking === "" ? {} : { reasoning: thinking }),
    ...(all.length > 0 ? callFields(all, options) : {}),
  };
  return {
    index,
    message,
    finish_reason: finishReason(done, { called: calls.length > 0, ...options }),
    ...(options.wantsLogprobs ? { logprobs: logprobsOf(logprobs) } : {}),
  };
}

/** A frame per event, one with the finish reason, one with the usage if requested, and the end mark. */
export const chunks = (choices: Choices, options: ChatReplyOptions): AsyncGenerator<Frame, void, void> =>
  choiceFrames(choices, {
    ...options,
    object: "chat.completion.chunk",
    count: choices.length,
    writer: (index) => choiceWriter(index, options),
  });

/** Writes its choice, timings, progress. */
function choiceWriter(index: number, options: ChatReplyOptions): ChunkWriter {
  let role: object = { role: "assistant" }; // only in the first delta
  let called = false;
  const timer = options.reports?.timings ? new Timer() : undefined;
  return (event) => {
    timer?.take(event);
    if (event.kind === "prompt" || event.kind === "promptLogprobs") return undefined;
    const more = timer && { timings: timer.timings };
    if (event.kind === "done") {
      return { choices: [{ index, delta: role, finish_reason: finishReason(event, { called, ...options }) }], ...more };
    }
    const opening = role;
    role = {};
    if (event.kind === "progress") {
      return { choices: [{ index, delta: { ...opening, content: null }, finish_reason: null }], ...progressOf(event) };
    }
    const isCall = event.kind === "toolCall" || event.kind === "cutCall";
    called ||= event.kind === "toolCall";
    const delta = { ...opening, ...deltaOf(event, options) };
    const logprobs = options.wantsLogprobs ? { logprobs: logprobsOf(isCall ? [] : event.logprobs) } : {};
    return { choices: [{ index, delta, finish_reason: null, ...logprobs }], ...more };
  };
}

/** `content` is always present: some clients concatenate it unchecked. */
function deltaOf(event: Exclude<AnswerEvent, DoneEvent>, options: Calls): object {
  switch (event.kind) {
    case "text":
      return { content: event.text };
    case "thinking":
      return { content: "", reasoning: event.text };
    case "toolCall":
    case "cutCall":
      return { content: "", ...callFields([event.call], options) };
    default:
      return event satisfies never;
  }
}

type Calls = Pick<ChatReplyOptions, "customTools" | "hasFunctions">;

function callFields(calls: readonly (ToolCall | CutCall)[], options: Calls): object {
  const [first] = calls;
  if (!first || !options.hasFunctions) return { tool_calls: calls.map((call) => callOf(call, options)) };
  const { name, arguments: args } = first.function;
  return { function_call: { name, arguments: argumentsText(args) } };
}

function callOf(
  { id, function: { index, name, arguments: args } }: ToolCall | CutCall,
  { customTools }: Calls,
): object {
  return customTools.has(name)
    ? { id, index, type: "custom", custom: { name, input: customInput(args) } }
    : { id, index, type: "function", function: { name, arguments: argumentsText(args) } };
}

function finishReason({ reason }: DoneEvent, { called, hasFunctions }: { called: boolean; hasFunctions: boolean }) {
  if (reason !== "stop" || !called) return reason;
  return hasFunctions ? "function_call" : "tool_calls";
}

function logprobsOf(chosen: readonly ChosenLogprob[] = []): object {
  const entry = ({ token, bytes, logprob }: TokenLogprob): object => ({ token, bytes, logprob });
  return { content: chosen.map((item) => ({ ...entry(item), top_logprobs: item.top.map(entry) })), refusal: null };
}
