/**
 * One turn of an agent: sends the session's waiting events and the prompt to the model, and makes its tool calls until
 * it answers. Stores nothing: the result holds the entries for the caller's transaction.
 */
import { AppError, checkNotCancelled, type Clock, isTemporary, messageOf } from "../../base/index.ts";
import type { Transaction } from "../database/store.ts";
import type { Message } from "../../runtime/portable.ts";
import { Journal } from "./calls/journal.ts";
import { isServerTool, offerRepeatable, offerServerTools } from "./calls/server-tools.ts";
import { consumeEvents, countEvents, waitingEvents } from "./events.ts";
import { fitTurn, EVENTS_SHOWN_MAX } from "./fit-turn.ts";
import { findModel } from "./models.ts";
import { askUntilAnswered, type Offered } from "./rounds.ts";
import { agentOf } from "./session-key.ts";
import { append, checkOpen, historyOf, type EntryBody } from "./sessions.ts";
import { turnSettings } from "./settings.ts";
import { parseThinking, thinkOf } from "./thinking.ts";
import { toolsFor } from "./tools/index.ts";
import {
  type Progress,
  type TurnParts,
  type TurnRecord,
  type TurnRequest,
  type TurnResult,
  withoutNul,
} from "./turn-request.ts";

export type { TurnParts, TurnRequest, TurnResult } from "./turn-request.ts";

/** Grace for a stopped model; after that the turn ends without it. */
const STOP_MS = 5000;
const NOTHING: TurnRecord = { entries: [], seen: [] };

const noProgress = (): Progress => ({
  text: "",
  isTruncated: false,
  isJournaled: false,
  unknown: [],
  usage: { promptTokens: 0, completionTokens: 0, rounds: 0, toolCalls: 0 },
});

/** The part of a request that results contain, too. */
const shown = ({ text, isTruncated, usage, model }: Progress) => ({
  text,
  isTruncated,
  usage,
  ...(model === undefined ? {} : { model }),
});

export function failedTurn(error: unknown, progress = noProgress()): TurnResult {
  const failed = { ...shown(progress), record: NOTHING };
  if (error instanceof AppError && error.code === "cancelled") {
    return { ...failed, status: "cancelled", error: "the turn was cancelled" };
  }
  const mayRepeat = progress.usage.toolCalls === 0 || progress.isJournaled;
  const isUntried = error instanceof AppError && error.isUntried && mayRepeat;
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
    const end = await orLeft(work, { signal, clock: parts.clock });
    if ("waitsUntil" in end) return { ...shown(progress), ...end, status: "waiting", record: NOTHING };
    return { ...shown(progress), status: "ok", record: end };
  } catch (error) {
    if (request.signal.aborted) return failedTurn(new AppError("cancelled", "the turn was cancelled"), progress);
    const failed = failedTurn(error, progress);
    if (!timeout.signal.aborted) return failed;
    return { ...failed, status: "timeout", error: `the turn took longer than ${timeoutMs / 1000} s` };
  } finally {
    disarm();
  }
}

/** The result of `work`. Throws `cancelled` if the work continues for too long after the signal was aborted. */
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

/** Returns the turn's record, or the time until which a call waits for an approval. */
async function converse(
  parts: TurnParts,
  request: TurnRequest,
  progress: Progress,
): Promise<TurnRecord | { readonly waitsUntil: number }> {
  const { store, clock, runtime } = parts;
  const { agents, session } = parts.settings();
  const { sessionKey, signal } = request;
  await store.read(() => checkOpen(sessionKey)); // fails before the model runs
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
  const offered = await offerTools(parts, request);
  progress.isJournaled = offered?.journal !== undefined;
  const tools = [
    ...toolsFor(request.tools.filter((name) => !isServerTool(name))),
    ...[...(offered?.tools.values() ?? [])].map(({ definition }) => definition),
  ];
  const level = parseThinking(request.thinking ?? "") ?? settings.thinking;
  const chat = {
    model: found.model,
    options: {},
    signal,
    session: sessionKey,
    ...(request.trace ? { trace: request.trace } : {}),
    isOutside: true, // text of the model or a tool also counts as outside text, because it may repeat some
    ...(tools.length > 0 ? { tools } : {}),
    ...(level === undefined ? {} : { think: thinkOf(level) }),
  };
  const fitted = await fitTurn(runtime, {
    chat,
    system: settings.systemPrompt,
    ...(await store.read(() => sessionState(sessionKey))),
    prompt: `${request.prompt}\n\nCurrent time: ${new Date(clock.now()).toISOString().replace(/\.\d+Z$/, "Z")}`,
    compactAt: session.compactAt,
  });
  const said = await askUntilAnswered(parts, { request, chat, messages: fitted.messages, offered }, progress);
  if ("waitsUntil" in said) return said;
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

/** The tools of tool servers of a turn, and the journal of its calls; undefined: the turn has no such tools. */
async function offerTools(
  { store, clock, servers }: TurnParts,
  { tools, runId, checkOwner, signal }: TurnRequest,
): Promise<Offered | undefined> {
  if (!tools.some(isServerTool)) return undefined;
  if (!checkOwner) return { journal: undefined, tools: await offerRepeatable(tools, { servers, signal }) };
  const journal = new Journal({ store, clock, runId, checkOwner });
  return { journal, tools: await offerServerTools(tools, { servers, signal }) };
}

/** Reads the session's history and waiting events. */
function* sessionState(sessionKey: string) {
  return {
    history: yield* historyOf(sessionKey),
    events: yield* waitingEvents({ sessionKey, limit: EVENTS_SHOWN_MAX }),
    waiting: yield* countEvents(sessionKey),
  };
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
export function* storeTurn({ record, ...turn }: StoreTurn): Transaction<void> {
  if (record.entries.length === 0) return;
  yield* append({ ...turn, entries: record.entries });
  yield* consumeEvents(record.seen);
}
