/**
 * What generate and chat have in common: finding the model, and the fields whose errors have wordings of their own.
 */
import { parseKeepAlive } from "../base/duration.ts";
import { AppError, assert, messageOf } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";
import { quoteGo } from "../base/quote.ts";
import type {
  ChosenLogprob,
  Format,
  GenerateRequest,
  InferenceEvent,
  Statistics,
  Think,
  ToolCall,
} from "../runtime/runtime.ts";
import { parseOptions } from "../sampling/options.ts";
import type { Store, StoredModel } from "../store/store.ts";
import type { Exchange } from "./exchange.ts";
import { checkTopLogprobs, wantedLogprobs } from "./logprobs.ts";
import type { GenerateBody } from "./schema/generate.ts";

/** The fields that both requests have. */
type InferenceBody = Pick<
  GenerateBody,
  | "model"
  | "stream"
  | "format"
  | "options"
  | "keep_alive"
  | "think"
  | "logprobs"
  | "top_logprobs"
  | "truncate"
  | "shift"
>;

/** Throws `bad_request` where the name is malformed, `not_found` where there is no such model. */
export async function findModel(store: Store, name: string): Promise<StoredModel> {
  const model = name.trim() === "" ? undefined : await store.find(name);
  if (!model) throw new AppError("not_found", `model '${name}' not found`);
  return model;
}

/** As `findModel`, in the words of the routes that embed. */
export async function checkPullable(store: Store, name: string): Promise<void> {
  if (name.trim() === "") throw new AppError("not_found", "model '' not found");
  if (!(await store.find(name)))
    throw new AppError("not_found", `model ${quoteGo(name)} not found, try pulling it first`);
}

/** Throws `bad_request` where no model was named. */
export function requireModel(name: string | undefined): string {
  if (!name?.trim()) throw new AppError("bad_request", "model is required");
  return name;
}

/** Fields that Go reads while it decodes the body, so that their errors come before any other. Throws `bad_request`. */
export function earlySettings(body: InferenceBody): { keepAliveMs?: number; think?: Think } {
  const keepAliveMs = parseKeepAlive(body.keep_alive);
  checkTopLogprobs(body);
  const think = parseThink(body.think);
  return { ...(think === undefined ? {} : { think }), ...(keepAliveMs === undefined ? {} : { keepAliveMs }) };
}

type LateSettings = Pick<GenerateRequest, "options" | "format" | "logprobs" | "truncate" | "shift">;

/** Throws `bad_option`. Unknown options are logged, not refused: clients send those of other servers. */
export function lateSettings(body: InferenceBody, log: Logger): LateSettings {
  const { options, unknown } = parseOptions(body.options);
  warnUnknown(log, { model: body.model, unknown });
  const format = parseFormat(body.format);
  const logprobs = wantedLogprobs(body);
  const { truncate, shift } = body;
  return {
    options,
    ...(format === undefined ? {} : { format }),
    ...(logprobs === undefined ? {} : { logprobs }),
    ...(truncate === undefined ? {} : { truncate }),
    ...(shift === undefined ? {} : { shift }),
  };
}

/** Says which options nobody knows. */
export function warnUnknown(
  log: Logger,
  { model, unknown }: { model: string | undefined; unknown: readonly string[] },
): void {
  if (unknown.length > 0) log.warn("unknown options", { model, options: unknown.slice(0, 16) });
}

/** Options of the APIs under `/v1`, which know no `bad_option`. Throws `bad_request`. */
export function readOptions(fields: object): ReturnType<typeof parseOptions> {
  try {
    return parseOptions(fields);
  } catch (error) {
    throw new AppError("bad_request", messageOf(error), { cause: error });
  }
}

/** Absent, empty, `json`, or a schema. */
function parseFormat(value: unknown): Format | undefined {
  if (value === undefined || value === "") return undefined;
  if (value === "json") return value;
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>; // JSON
  const raw = quoteGo(JSON.stringify(value));
  throw new AppError("bad_option", `invalid format: ${raw}; expected "json" or a valid JSON Schema object`);
}

const THINK_LEVELS = ["high", "medium", "low", "max"] as const;
const THINK_VALUES = `"high", "medium", "low", "max", true, or false`;

/** Whether the request asks for thinking, and how much; undefined where it does not say. */
function parseThink(value: unknown): Think | undefined {
  if (value === undefined || typeof value === "boolean") return value;
  const level = THINK_LEVELS.find((each) => each === value);
  if (level !== undefined) return level;
  if (typeof value === "string") {
    throw new AppError("bad_request", `invalid think value: ${quoteGo(value)} (must be ${THINK_VALUES})`);
  }
  throw new AppError("bad_request", `think must be a boolean or string (${THINK_VALUES})`);
}

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
