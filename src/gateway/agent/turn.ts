/**
 * One turn of an agent: sends the session's waiting events and the prompt to the model, and makes its tool calls until
 * it answers. Stores nothing: the result holds the entries for the caller's transaction.
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
  /** Rendered; outside parts are behind the safety boundary. */
  readonly prompt: string;
  /** Name or alias; undefined: the agent's default. */
  readonly model?: string;
  /** A level or a synonym; any other text is ignored. */
  readonly thinking?: string;
  /** Undefined: the agent's default. */
  readonly timeoutMs?: number;
  /** Names of the allowed tools. */
  readonly tools: readonly string[];
  /** Aborting it stops the model. */
  readonly signal: AbortSignal;
  readonly onText?: (text: string) => void;
  /** Trace of its requests to models. */
  readonly trace?: Trace;
}

export interface TurnUsage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Number of requests to the model for this answer. */
  readonly rounds: number;
  readonly toolCalls: number;
}

/** The entries that a turn adds to its session; empty if it failed, so that it can be tried again. */
export interface TurnRecord {
  readonly entries: readonly EntryBody[];
  readonly seen: readonly SeenEvent[];
}

export interface TurnResult {
  /** The answer, or the part that arrived. */
  readonly text: string;
  readonly status: "ok" | "error" | "timeout" | "cancelled";
  /** The error, for people. */
  readonly error?: string;
  /** True if the same turn may succeed later: the model was busy or crashed, the request is not at fault. */
  readonly isTemporary?: boolean;
  /** True if no model began the turn: its server is down or refuses requests, or the model is missing. */
  readonly isUntried?: boolean;
  /** True if the model is missing, but can be pulled. */
  readonly isModelMissing?: boolean;
  /** The server's Retry-After, if any. */
  readonly retryAfterMs?: number;
  /** True if the context or the token limit cut the answer off. */
  readonly isTruncated: boolean;
  readonly usage: TurnUsage;
  /** Undefined if none was resolved; for a missing model its name. */
  readonly model?: string;
  readonly record: TurnRecord;
}

/**
 * Most requests to the model in one turn. The last one has no tools, so that the model must answer; so has the one
 * after the results of tools no longer fit the context.
 */
const ROUNDS_MAX = 8;
/** Calls made per round; further ones get an error as their result. */
const CALLS_MAX = 8;
/** Grace for a stopped model; after that the turn ends without it. */
const STOP_MS = 5000;
const NOTHING: TurnRecord = { entries: [], seen: [] };

/** State of a running turn. */
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

/** No chat shows U+0000, and PostgreSQL cannot store it. */
const withoutNul = (text: string): string => text.replaceAll("\0", "\ufffd");

/** The result of a turn that an error ended. */
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

/** Never rejects: an error becomes a status. A turn that ignores its signal is abandoned. */
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

/** The result of `work`. Throws `cancelled` if it runs on for too long after the signal was aborted. */
async function orLeft<T>(work: Promise<T>, { signal, clock }: { signal: AbortSignal; clock: Clock }): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  let disarm = (): void => {};
  const leave = (): void => {
    disarm = clock.after(STOP_MS, () => reject(new AppError("cancelled", "the model did not stop in time")));
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
  await store.read(() => checkOpen(sessionKey)); // fails before a model works in vain
  const settings = turnSettings(agents, agentOf(sessionKey));
  if (!settings) throw new AppError("not_found", `there is no agent '${agentOf(sessionKey)}'`);
  const found = await findModel({ agents, reference: request.model, fallback: settings.model }, parts);
  if ("error" in found) {
    const { code, message, name } = found.error;
    if (code === "model_not_allowed") throw new AppError("bad_request", message);
    progress.model = name;
    throw new AppError("not_found", message, { isUntried: true }); // it may be pulled at any time
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
    isOutside: true, // words of the model or a tool count too: they may repeat outside text
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
  // thinking goes back to the model within a turn; transcripts omit it
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

/** Reads the session's history and waiting events. */
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

/** Runs rounds until the model answers. Returns the model's messages and its tools', the answer last. */
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
    // a remote model server may send calls without being given tools
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
    else isFull = true; // the next round answers with the results of earlier rounds
  }
}

/**
 * The answer without calls that the model wrote although it has no tools, or no round left. Throws `bad_request` if
 * nothing else is in it: the operator has to choose another model.
 * @param hasCalls true if the model made calls beside the text
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
  /** True if the session ends with this run. */
  readonly isEphemeral: boolean;
  readonly now: number;
}

/** Appends a turn to its transcript and removes the events that it saw, in one transaction. */
export function* storeTurn({ record, ...turn }: StoreTurn): Script<void> {
  if (record.entries.length === 0) return;
  yield* append({ ...turn, entries: record.entries });
  yield* consumeEvents(record.seen);
}
