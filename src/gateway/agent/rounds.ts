/** The rounds of a turn: requests to the model, and the calls of tools between them, until it answers. */
import { AppError, checkNotCancelled } from "../../base/index.ts";
import type { ChatRequest, InferenceEvent, Message, ToolCall } from "../../runtime/portable.ts";
import { operator, type TaintedText } from "./boundary/tainted-text.ts";
import { withoutCalls } from "./call-markup.ts";
import type { CallRow, Journal, KnownRound } from "./calls/journal.ts";
import { makeCall, makeRepeatable, noteOfUnknownEffects } from "./calls/make-call.ts";
import type { ServerTool } from "./calls/server-tools.ts";
import { fitRound, type ToolMessage } from "./fit-turn.ts";
import { callTool, RESULT_CHARS_MAX, renderResult } from "./tools/index.ts";
import { withoutNul, type Progress, type TurnParts, type TurnRequest } from "./turn-request.ts";

/**
 * Maximum number of requests to the model in one turn. The last one has no tools, so that the model must answer; so has
 * the one after the results of tools no longer fit the context.
 */
const ROUNDS_MAX = 8;
/** Maximum calls per round; further calls get an error as their result. */
const CALLS_MAX = 8;

interface Asking {
  readonly request: TurnRequest;
  readonly chat: Omit<ChatRequest, "messages">;
  readonly messages: readonly Message[];
  /** Undefined: the turn has no tools of tool servers. */
  readonly offered: Offered | undefined;
}

/** Tools of tool servers. */
export interface Offered {
  /** Undefined: calls may be repeated, and are not stored. */
  readonly journal: Journal | undefined;
  /** By the model's name. */
  readonly tools: ReadonlyMap<string, ServerTool>;
}

/** A call waits for an approval, at most until then, in epoch milliseconds. */
interface Waiting {
  readonly waitsUntil: number;
}

/**
 * Runs rounds until the model answers. Rounds of an earlier attempt of the turn continue after their last finished
 * call. Returns the model's messages and its tools', the answer last.
 */
export async function askUntilAnswered(
  parts: TurnParts,
  asking: Asking,
  progress: Progress,
): Promise<readonly Message[] | Waiting> {
  const { chat, offered } = asking;
  const known = (await offered?.journal?.load()) ?? [];
  const said: Message[] = [];
  let isFull = false;
  for (let i = 0; ; i++) {
    const isLast = ++progress.usage.rounds === ROUNDS_MAX || isFull;
    const messages = [...asking.messages, ...said];
    const round = known[i] ?? (await askModel(parts, { ...asking, messages, isLast, round: i }, progress));
    if (!round) {
      said.push({ role: "assistant", content: progress.text });
      return said;
    }
    const results = await resultsOf(parts, asking, round, progress);
    if ("waitsUntil" in results) return results;
    const fitted = await fitRound(parts.runtime, chat, { before: messages, calling: round.message, results });
    if (fitted) said.push(...fitted);
    else isFull = true; // the next round answers with the results of earlier rounds
  }
}

/** One request to the model: its calls, which are stored before they are made; undefined: it answered. */
async function askModel(
  { runtime }: TurnParts,
  { request, chat, messages, offered, isLast, round }: Asking & { readonly isLast: boolean; readonly round: number },
  progress: Progress,
): Promise<KnownRound | undefined> {
  progress.text = "";
  request.checkTime?.();
  checkNotCancelled(request.signal);
  const choice = isLast ? ({ toolChoice: "none" } as const) : {};
  const answer = await ask(runtime.chat({ ...chat, messages, truncate: false, shift: false, ...choice }), {
    progress,
    onText: request.onText,
  });
  // a remote model server may send calls without being given tools
  if (answer.calls.length === 0 || isLast || !chat.tools) {
    progress.text = answerOf(progress, chat, answer.calls.length > 0);
    return undefined;
  }
  const thinking = answer.thinking === "" ? {} : { thinking: answer.thinking };
  const message: Message = { role: "assistant", content: progress.text, tool_calls: answer.calls, ...thinking };
  const chosen = answer.calls.slice(0, CALLS_MAX).flatMap((call, place) => {
    const tool = offered?.tools.get(call.function.name);
    return tool ? [{ place, call, tool }] : [];
  });
  return { message, calls: (await offered?.journal?.plan(round, message, chosen)) ?? [] };
}

/** Makes the calls of a round, in order, up to the first that waits for an approval. */
async function resultsOf(
  parts: TurnParts,
  { request, offered }: Asking,
  { message, calls }: KnownRound,
  progress: Progress,
): Promise<readonly ToolMessage[] | Waiting> {
  const results: ToolMessage[] = [];
  for (const [i, call] of (message.tool_calls ?? []).entries()) {
    progress.usage.toolCalls++;
    const row = calls.find(({ place }) => place === i);
    const end = row && offered ? await journaledCall(parts, { request, offered, row, call }, progress) : undefined;
    if (end && "waitsUntil" in end) return end;
    const result = end ?? (await otherCall(parts, { request, offered, call, i }));
    if (request.signal.aborted) throw new AppError("cancelled", "the turn was cancelled");
    results.push(toolMessage(call, result));
  }
  return results;
}

async function journaledCall(
  { clock }: TurnParts,
  {
    request,
    offered: { journal, tools },
    row,
    call,
  }: {
    readonly request: TurnRequest;
    readonly offered: Offered;
    readonly row: CallRow;
    readonly call: ToolCall;
  },
  progress: Progress,
): Promise<TaintedText | Waiting> {
  if (!journal) throw new Error("a call is stored, and the turn has no journal");
  const tool = tools.get(call.function.name);
  const parts = { journal, tool, now: clock.now(), signal: request.signal, charsMax: RESULT_CHARS_MAX };
  const end = await makeCall(row, parts);
  if (end.kind === "waits") return { waitsUntil: end.until };
  if (end.isUnknown) progress.unknown.push(row.tool);
  return end.result;
}

/** Makes a call that is not stored: of our own tools, which have no effects, or of a tool that may be repeated. */
function otherCall(
  { store, clock }: TurnParts,
  { request, offered, call, i }: { request: TurnRequest; offered: Offered | undefined; call: ToolCall; i: number },
): Promise<TaintedText> | TaintedText {
  const { sessionKey, signal, tools } = request;
  if (i >= CALLS_MAX) return operator(`error: expected at most ${CALLS_MAX} calls at once`);
  const tool = offered?.journal ? undefined : offered?.tools.get(call.function.name);
  if (tool) return makeRepeatable(call.function.arguments, tool, { signal, charsMax: RESULT_CHARS_MAX });
  return callTool(call, { allowed: tools, context: { store, sessionKey, now: clock.now(), signal } });
}

function toolMessage(call: ToolCall, result: TaintedText): ToolMessage {
  const { name } = call.function;
  const id = call.id === undefined ? {} : { tool_call_id: call.id };
  return (charsMax) => {
    return { role: "tool", content: renderResult(result, { source: name, charsMax }), tool_name: name, ...id };
  };
}

/**
 * The answer, without calls that the model wrote although it has no tools or no rounds left. Throws `bad_request` if
 * nothing else is in it: the operator has to choose another model.
 * @param hasCalls true if the model made calls in addition to the text
 */
function answerOf({ text, usage, unknown }: Progress, { model, tools }: Asking["chat"], hasCalls: boolean): string {
  const answer = tools ? text : withoutCalls(text);
  const note = unknown.length > 0 ? noteOfUnknownEffects(unknown) : undefined;
  if (answer.trim() !== "" || (text.trim() === "" && !hasCalls)) {
    return note === undefined ? answer : `${answer.trimEnd()}\n\n${note}`.trimStart();
  }
  const why = tools ? `after ${usage.rounds} rounds` : "and this turn has none";
  throw new AppError("bad_request", `model '${model}' called a tool instead of answering, ${why}`);
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
      case "progress":
      case "promptLogprobs":
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
