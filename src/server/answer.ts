/** What became of a request to generate: its events, all of them together, and the last object's fields. */
import { AppError, assert } from "../base/errors.ts";
import type { ChosenLogprob, InferenceEvent, Statistics, ToolCall } from "../runtime/runtime.ts";
import type { Exchange } from "./exchange.ts";

export type DoneEvent = Extract<InferenceEvent, { kind: "done" }>;

/** The fields of the last object: why it ended, and what it took. */
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

/** What the log line says of a finished answer. */
function doneNotes({ reason, statistics }: DoneEvent): Record<string, unknown> {
  const counts = statistics && { prompt_eval_count: statistics.promptEvalCount, eval_count: statistics.evalCount };
  return { done_reason: reason, ...counts };
}

/** The events of an answer, ending with `done`, which the log line notes. Throws `runner` where that never comes. */
export async function* checkedEvents(
  events: AsyncGenerator<InferenceEvent, void, void>,
  note: Exchange["note"],
): AsyncGenerator<InferenceEvent, void, void> {
  let last: InferenceEvent["kind"] | undefined;
  for await (const event of events) {
    last = event.kind;
    if (event.kind === "done") note(doneNotes(event));
    yield event;
  }
  if (last !== "done") throw new AppError("runner", "model runner has unexpectedly stopped");
}

/** A whole answer. */
export interface Answer {
  readonly text: string;
  readonly thinking: string;
  readonly calls: readonly ToolCall[];
  /** Empty where none were asked for. */
  readonly logprobs: readonly ChosenLogprob[];
  readonly done: DoneEvent;
}

/** Gathers the events of an answer, which end with `done`. */
export async function collect(events: AsyncIterable<InferenceEvent>): Promise<Answer> {
  let text = "";
  let thinking = "";
  let done: DoneEvent | undefined;
  const calls: ToolCall[] = [];
  const logprobs: ChosenLogprob[] = [];
  for await (const event of events) {
    if (event.kind === "done") done = event;
    else if (event.kind === "toolCall") calls.push(event.call);
    else {
      if (event.kind === "text") text += event.text;
      else thinking += event.text;
      logprobs.push(...(event.logprobs ?? []));
    }
  }
  assert(done, "an answer without its last event");
  return { text, thinking, calls, logprobs, done };
}
