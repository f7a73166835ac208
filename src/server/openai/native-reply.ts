/**
 * Answers of `POST /completion` and `POST /infill`, as llama-server writes them.
 * https://github.com/ggml-org/llama.cpp/tree/master/tools/server
 */
import { AppError, isObject } from "../../base/index.ts";
import type { ChosenLogprob, TokenLogprob } from "../../runtime/portable.ts";
import type { AnswerEvent, DoneEvent, ReportEvent } from "../answers/answer.ts";
import type { Frame } from "../http/sse.ts";
import { merged } from "./choices.ts";
import { progressOf, Timer, timingsOf } from "./timings.ts";

/** Events of an answer that no parser has read: it has no thinking and no calls. */
export type NativeEvent = Extract<AnswerEvent | ReportEvent, { kind: "text" | "done" | "prompt" | "progress" }>;

export type NativeEvents = AsyncGenerator<NativeEvent, void, void>;

/** Fields of the last object that are not in its events. */
export interface About {
  readonly model: string;
  readonly settings: object;
  /** The prompt's text, by the number of the answer. */
  readonly promptOf: (index: number) => string;
  /** Tokens that the answer reports: their ids, and log-probabilities. */
  readonly tokens: { readonly ids: boolean; readonly probabilities: boolean; readonly isLinear: boolean };
  /** Each frame has `timings`. */
  readonly timesFrames: boolean;
  /** The requested fields of the answer; `a/b` is field `b` of `a`. */
  readonly fields: readonly string[] | undefined;
}

/** Ends an answer between two lines once its time is up. @param mostMs from the first token; 0: no limit */
export async function* nativeEvents(events: AsyncIterable<AnswerEvent | ReportEvent>, mostMs = 0): NativeEvents {
  let startedMs = 0;
  for await (const event of events) {
    if (event.kind !== "text" && event.kind !== "done" && event.kind !== "prompt" && event.kind !== "progress")
      continue;
    yield event;
    if (event.kind !== "text") continue;
    startedMs ||= performance.now();
    const isLate = mostMs > 0 && performance.now() - startedMs > mostMs;
    if (isLate && event.text.includes("\n")) return yield { kind: "done", reason: "length" };
  }
}

export async function wholeAnswer(events: NativeEvents, index: number, about: About): Promise<object> {
  let content = "";
  let done: DoneEvent | undefined;
  const chosen: ChosenLogprob[] = [];
  for await (const event of events) {
    if (event.kind === "done") done = event;
    if (event.kind !== "text") continue;
    content += event.text;
    chosen.push(...(event.logprobs ?? []));
  }
  if (!done) throw new AppError("runner", "the answer has no end");
  const probabilities = about.tokens.probabilities && chosen.length > 0 ? probabilitiesOf(chosen, about) : {};
  const body = { content, tokens: about.tokens.ids ? chosen.map(({ id }) => id) : [] };
  return picked({ index, ...body, ...lastFields(done, { content, index, about }), ...probabilities }, about);
}

/** A frame per text and report, and one with the fields of each whole answer. There is no end mark. */
export async function* nativeFrames(answers: readonly NativeEvents[], about: About): AsyncGenerator<Frame, void, void> {
  const writers = answers.map((_, index) => frameWriter(index, about));
  for await (const { index, event } of merged(answers)) {
    const data = writers[index]!(event); // one for each
    if (data) yield { data };
  }
}

function frameWriter(index: number, about: About): (event: NativeEvent) => object | undefined {
  let content = "";
  let count = 0;
  let evaluated = 0;
  const timer = about.timesFrames ? new Timer() : undefined;
  return (event) => {
    timer?.take(event);
    if (event.kind === "done") {
      return picked({ index, content: "", tokens: [], ...lastFields(event, { content, index, about }) }, about);
    }
    if (event.kind === "prompt") {
      evaluated = event.promptEvalCount;
      return undefined;
    }
    const chosen = event.kind === "text" ? (event.logprobs ?? []) : [];
    const text = event.kind === "text" ? event.text : "";
    if (event.kind === "text") count += about.tokens.ids || about.tokens.probabilities ? chosen.length : 1;
    content += text;
    return {
      index,
      content: text,
      tokens: chosen.map(({ id }) => id),
      stop: false,
      id_slot: -1,
      tokens_predicted: count,
      tokens_evaluated: event.kind === "text" ? evaluated : event.promptEvalCount,
      ...(timer ? { timings: timer.timings } : {}),
      ...(event.kind === "progress" ? progressOf(event) : {}),
      ...(about.tokens.probabilities && chosen.length > 0 ? probabilitiesOf(chosen, about) : {}),
    };
  };
}

/** Answers are not bound to slots: `id_slot` is −1, any slot. */
function lastFields(done: DoneEvent, { content, index, about }: { content: string; index: number; about: About }) {
  const { statistics, stopSequence, truncated = false, reason } = done;
  const { promptEvalCount = 0, evalCount = 0 } = statistics ?? {};
  return {
    id_slot: -1,
    stop: true,
    model: about.model,
    tokens_predicted: evalCount,
    tokens_evaluated: promptEvalCount,
    generation_settings: about.settings,
    prompt: about.promptOf(index),
    has_new_line: content.includes("\n"),
    truncated,
    stop_type: stopSequence !== undefined ? "word" : reason === "length" ? "limit" : "eos",
    stopping_word: stopSequence ?? "",
    tokens_cached: Math.max(0, promptEvalCount + evalCount - 1), // the last token is not read again
    ...timingsOf([done]),
  };
}

function probabilitiesOf(chosen: readonly ChosenLogprob[], { tokens: { isLinear } }: About): object {
  const entry = ({ id, token, bytes, logprob }: TokenLogprob): object => ({
    id,
    token,
    bytes,
    // JSON has no −∞
    ...(isLinear ? { prob: Math.exp(logprob) } : { logprob: Math.max(logprob, -Number.MAX_VALUE) }),
  });
  const top = isLinear ? "top_probs" : "top_logprobs";
  return { completion_probabilities: chosen.map((each) => ({ ...entry(each), [top]: each.top.map(entry) })) };
}

/** The requested fields, under the names in the request; all if none are named. */
function picked(answer: object, { fields }: About): object {
  if (!fields || fields.length === 0) return answer;
  const valueAt = (path: string): unknown =>
    path
      .split("/")
      .reduce<unknown>((at, key) => (isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined), answer);
  return Object.fromEntries(fields.map((path) => [path, valueAt(path)]).filter(([, value]) => value !== undefined));
}
