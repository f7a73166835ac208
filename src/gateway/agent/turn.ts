/**
 * One turn of an agent: what waited for the session and the prompt go to the model, whose tool calls are made until it
 * answers. Changes nothing durable: what is to be stored is in the result, for the caller's transaction.
 */
import { AppError, checkNotCancelled, type Clock, isTemporary, messageOf } from "../../base/index.ts";
import { operator } from "./boundary/passage.ts";
import type { Script, Store } from "../database/store.ts";
import type { Trace } from "../../base/tracing.ts";
import type { ChatRequest, ChatRuntime, InferenceEvent, Message, ToolCall } from "../../runtime/portable.ts";
import { consumeEvents, countEvents, waitingEvents, type SeenEvent } from "./events.ts";
import { withoutCalls } from "./call-markup.ts";
import { fitRound, fitTurn, EVENTS_SHOWN_MAX, type ToolMessage } from "./fit-turn.ts";
import { findModel, type ModelSource } from "./models.ts";
import { agentOf } from "./session-key.ts";
import { append, checkOpen, historyOf, type EntryBody } from "./sessions.ts";
import { turnSettings, type AgentSettings } from "./settings.ts";
import { parseThinking, thinkOf } from "./thinking.ts";
import { callTool, renderResult, toolsFor } from "./tools/index.ts";

export interface TurnParts extends ModelSource {
  readonly runtime: ChatRuntime;
  readonly store: Store;
  readonly clock: Clock;
  readonly settings: () => AgentSettings;
}

export interface TurnRequest {
  readonly runId: string;
  /** As `hookSession` and `mainSessionKey` make them. */
  readonly sessionKey: string;
  /** Rendered: outside parts are behind the safety boundary. */
  readonly prompt: string;
  /** Name or alias; undefined: the agent's. */
  readonly model?: string;
  /** A level or a synonym; what is neither is as if it were not there. */
  readonly thinking?: string;
  /** Undefined: the agent's. */
  readonly timeoutMs?: number;
  /** Names of the tools that it may use. */
  readonly tools: readonly string[];
  /** Aborted: the model stops. */
  readonly signal: AbortSignal;
  readonly onText?: (text: string) => void;
  /** Where its requests to models belong. */
  readonly trace?: Trace;
}

export interface TurnUsage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** How often the model was asked for this answer. */
  readonly rounds: number;
  readonly toolCalls: number;
}

/** What a turn adds to its session; empty where it did not end well, so that it can be tried again. */
export interface TurnRecord {
  readonly entries: readonly EntryBody[];
  readonly seen: readonly SeenEvent[];
}

export interface TurnResult {
  /** The answer, or what there was of it. */
  readonly text: string;
  readonly status: "ok" | "error" | "timeout" | "cancelled";
  /** What went wrong, for people. */
  readonly error?: string;
  /** Whether the same turn may succeed later: a busy or crashed model, not a bad request. */
  readonly isTemporary?: boolean;
  /** Whether no model began it: their server is away or takes no requests, or the model is missing. */
  readonly isUntried?: boolean;
  /** Whether its model is not there, but may come: it can be pulled. */
  readonly isModelMissing?: boolean;
  /** When that server wants to be asked again, if it said. */
  readonly retryAfterMs?: number;
  /** Whether the answer ends where the context or the limit did. */
  readonly isTruncated: boolean;
  readonly usage: TurnUsage;
  /** Undefined where none was found; of one that is missing the name. */
  readonly model?: string;
  readonly record: TurnRecord;
}

/**
 * Times that a model is asked in one turn; the last time, and once its context has no room for what tools give back,
 * without tools, so that it must answer.
 */
const ROUNDS_MAX = 8;
/** Calls made per round; further ones get an error as their result. */
const CALLS_MAX = 8;
/** How long a model that was told to stop may take to do so, before it is left alone. */
const STOP_MS = 5000;
const NOTHING: TurnRecord = { entries: [], seen: [] };

/** What is known of a turn while it runs. */
interface Progress {
  text: string;
  model?: string;
  isTruncated: boolean;
  readonly usage: { -readonly [Key in keyof TurnUsage]: TurnUsage[Key] };
}

const noProgress = (): Progress => ({
  text: "",
  isTruncated: false,
  usage: { promptTokens: 0, completionTokens: 0, rounds: 0, toolCalls: 0 },
});

/** No chat shows U+0000, and not every database can hold it. */
const withoutNul = (text: string): string => text.replaceAll("\0", "\ufffd");

/** What comes of a turn that an error ended. */
export function failedTurn(error: unknown, progress = noProgress()): TurnResult {
  const failed = { ...progress, record: NOTHING };
  if (error instanceof AppError && error.code === "cancelled") {
    return { ...failed, status: "cancelled", error: "the turn was cancelled" };
  }
  const isUntried = error instanceof AppError && error.isUntried && progress.usage.toolCalls === 0;
  return {
    ...failed,
    status: "error",
    error: withoutNul(messageOf(error)),
    isTemporary: isUntried || isTemporary(error),
    isUntried,
    ...(isUntried && error.code === "not_found" ? { isModelMissing: true } : {}),
    ...(error instanceof AppError && error.retryAfterMs !== undefined ? { retryAfterMs: error.retryAfterMs } : {}),
  };
}

/** Never rejects: whatever goes wrong is a status. A turn that does not stop when told is over without it. */
export async function runTurn(parts: TurnParts, request: TurnRequest): Promise<TurnResult> {
  const progress = noProgress();
  const timeout = new AbortController();
  const signal = AbortSignal.any([request.signal, timeout.signal]);
  let disarm = (): void => {};
  let timeoutMs = 0;
  try {
    checkNotCancelled(request.signal);
    timeoutMs = request.timeoutMs ?? timeoutOf(parts, request);
    disarm = parts.clock.after(timeoutMs, () => timeout.abort());
    const onText = (text: string): void => void (signal.aborted || request.onText?.(text));
    const work = converse(parts, { ...request, signal, onText }, progress);
    const record = await orLeft(work, { signal, clock: parts.clock });
    return { ...progress, status: "ok", record };
  } catch (error) {
    if (request.signal.aborted) return failedTurn(new AppError("cancelled", "told to stop"), progress);
    const failed = failedTurn(error, progress);
    if (!timeout.signal.aborted) return failed;
    return { ...failed, status: "timeout", error: `the turn took longer than ${timeoutMs / 1000} s` };
  } finally {
    disarm();
  }
}

/** What a turn comes to. Throws `cancelled` where it goes on for long after the signal was aborted. */
async function orLeft<T>(work: Promise<T>, { signal, clock }: { signal: AbortSignal; clock: Clock }): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  let disarm = (): void => {};
  const leave = (): void => {
    disarm = clock.after(STOP_MS, () => reject(new AppError("cancelled", "the model did not stop when told")));
  };
  if (signal.aborted) leave();
  else signal.addEventListener("abort", leave, { once: true });
  try {
    return await Promise.race([work, promise]);
  } finally {
    signal.removeEventListener("abort", leave);
    disarm();
  }
}

function timeoutOf(parts: TurnParts, { sessionKey }: TurnRequest): number {
  const { agents } = parts.settings();
  return turnSettings(agents, agentOf(sessionKey))?.timeoutMs ?? agents.defaults.timeoutSeconds * 1000;
}

async function converse(parts: TurnParts, request: TurnRequest, progress: Progress): Promise<TurnRecord> {
  const { store, clock, runtime } = parts;
  const { agents, session } = parts.settings();
  const { sessionKey, signal } = request;
  await store.read(() => checkOpen(sessionKey)); // before a model works for nothing
  const settings = turnSettings(agents, agentOf(sessionKey));
  if (!settings) throw new AppError("not_found", `there is no agent '${agentOf(sessionKey)}'`);
  const found = await findModel({ agents, reference: request.model, fallback: settings.model }, parts);
  if ("error" in found) {
    const { code, message, name } = found.error;
    if (code === "model_not_allowed") throw new AppError("bad_request", message);
    progress.model = name;
    throw new AppError("not_found", message, { isUntried: true }); // it may be pulled any time
  }
  progress.model = found.model;
  const tools = toolsFor(request.tools);
  const level = parseThinking(request.thinking ?? "") ?? settings.thinking;
  const chat = {
    model: found.model,
    options: {},
    signal,
    session: sessionKey,
    ...(request.trace ? { trace: request.trace } : {}),
    isOutside: true, // also what the model or a tool said: it may repeat what it read
    ...(tools.length > 0 ? { tools } : {}),
    ...(level === undefined ? {} : { think: thinkOf(level) }),
  };
  const fitted = await fitTurn(runtime, {
    chat,
    system: settings.systemPrompt,
    ...(await store.read(() => told(sessionKey))),
    prompt: `${request.prompt}\n\nCurrent time: ${new Date(clock.now()).toISOString().replace(/\.\d+Z$/, "Z")}`,
    compactAt: session.compactAt,
  });
  const said = await askUntilAnswered(parts, { request, chat, messages: fitted.messages }, progress);
  // thinking goes back to the model within a turn; transcripts are kept without
  const message = (said: Message): EntryBody => {
    const { thinking: _, ...body } = said;
    return { kind: "message", message: body };
  };
  return {
    entries: [
      ...(fitted.compaction ? [fitted.compaction] : []),
      message({ role: "user", content: fitted.content }),
      ...said.slice(0, -1).map(message),
      ...said
        .slice(-1)
        .map((last): EntryBody => ({ kind: "message", message: last, isTruncated: progress.isTruncated })),
    ],
    seen: fitted.shown.map(({ seq, count, wantsHeartbeat, isDelivered }) => ({
      seq,
      count,
      wantsHeartbeat,
      isDelivered,
    })),
  };
}

/** What the session has to tell. */
function* told(sessionKey: string) {
  return {
    history: yield* historyOf(sessionKey),
    events: yield* waitingEvents({ sessionKey, limit: EVENTS_SHOWN_MAX }),
    waiting: yield* countEvents(sessionKey),
  };
}

interface Asking {
  readonly request: TurnRequest;
  readonly chat: Omit<ChatRequest, "messages">;
  readonly messages: readonly Message[];
}

/** The model's messages and its tools', the answer last. */
async function askUntilAnswered(parts: TurnParts, asking: Asking, progress: Progress): Promise<readonly Message[]> {
  const { request, chat } = asking;
  const said: Message[] = [];
  let isFull = false;
  for (;;) {
    const isLast = ++progress.usage.rounds === ROUNDS_MAX || isFull;
    const messages = [...asking.messages, ...said];
    progress.text = "";
    const round = await ask(
      parts.runtime.chat({
        ...chat,
        messages,
        truncate: false,
        shift: false,
        ...(isLast ? { toolChoice: "none" } : {}),
      }),
      { progress, onText: request.onText },
    );
    // a model server elsewhere may give calls that were not asked for
    if (round.calls.length === 0 || isLast || !chat.tools) {
      progress.text = answerOf(progress, chat, round.calls.length > 0);
      said.push({ role: "assistant", content: progress.text });
      return said;
    }
    const thinking = round.thinking === "" ? {} : { thinking: round.thinking };
    const calling: Message = { role: "assistant", content: progress.text, tool_calls: round.calls, ...thinking };
    const results: ToolMessage[] = [];
    for (const [i, call] of round.calls.entries()) results.push(await resultOf(parts, { request, call, i }, progress));
    const fitted = await fitRound(parts.runtime, chat, { before: messages, calling, results });
    if (fitted) said.push(...fitted);
    else isFull = true; // it answers from what it had before this round
  }
}

/**
 * An answer without the calls that a model writes though it has no tools, or has had its rounds.
 * Throws `bad_request` where nothing else is in it: another model has to be chosen.
 * @param hasCalls whether the model made calls beside the text
 */
function answerOf({ text, usage }: Progress, { model, tools }: Asking["chat"], hasCalls: boolean): string {
  const answer = tools ? text : withoutCalls(text);
  if (answer.trim() !== "" || (text.trim() === "" && !hasCalls)) return answer;
  const why = tools ? `after ${usage.rounds} rounds` : "and this turn has none";
  throw new AppError("bad_request", `model '${model}' called a tool instead of answering, ${why}`);
}

async function resultOf(
  { store, clock }: TurnParts,
  { request, call, i }: { request: TurnRequest; call: ToolCall; i: number },
  progress: Progress,
): Promise<ToolMessage> {
  const { sessionKey, signal, tools } = request;
  progress.usage.toolCalls++;
  const result =
    i < CALLS_MAX
      ? await callTool(call, { allowed: tools, context: { store, sessionKey, now: clock.now(), signal } })
      : operator(`error: at most ${CALLS_MAX} calls at once`);
  if (signal.aborted) throw new AppError("cancelled", "the turn was cancelled");
  const { name } = call.function;
  const id = call.id === undefined ? {} : { tool_call_id: call.id };
  return (charsMax) => {
    return { role: "tool", content: renderResult(result, { source: name, charsMax }), tool_name: name, ...id };
  };
}

/** Reads one answer of the model to its end. */
async function ask(
  events: AsyncGenerator<InferenceEvent, void, void>,
  { progress, onText }: { progress: Progress; onText: TurnRequest["onText"] },
): Promise<{ readonly calls: readonly ToolCall[]; readonly thinking: string }> {
  const calls: ToolCall[] = [];
  let thinking = "";
  for await (const event of events) {
    switch (event.kind) {
      case "text": {
        const text = withoutNul(event.text);
        progress.text += text;
        onText?.(text);
        break;
      }
      case "cutCall":
        progress.text += withoutNul(event.call.text);
        break;
      case "prompt":
        break;
      case "thinking":
        thinking += event.text;
        break;
      case "toolCall":
        calls.push(event.call);
        break;
      case "done":
        progress.isTruncated = event.reason === "length";
        progress.usage.promptTokens += event.statistics?.promptEvalCount ?? 0;
        progress.usage.completionTokens += event.statistics?.evalCount ?? 0;
        break;
      default:
        event satisfies never;
    }
  }
  return { calls, thinking };
}

export interface StoreTurn {
  readonly sessionKey: string;
  readonly runId: string;
  readonly record: TurnRecord;
  /** Whether the session ends with this run. */
  readonly isEphemeral: boolean;
  readonly now: number;
}

/** Puts a turn into its transcript, and takes away the events that it saw: both or neither. */
export function* storeTurn({ record, ...turn }: StoreTurn): Script<void> {
  if (record.entries.length === 0) return;
  yield* append({ ...turn, entries: record.entries });
  yield* consumeEvents(record.seen);
}
