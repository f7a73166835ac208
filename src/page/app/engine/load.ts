/** Fetched when a model is to run in the page: the runtime, and its chat requests. */
import { AppError, type Code, messageOf } from "../../../base/index.ts";
import { makePageRuntime, type PageRuntime, type PageRuntimeOptions } from "../../engine/runtime.ts";
import type { InferenceEvent, Message } from "../../../runtime/portable.ts";
import { parseOptions } from "../../../engine/index.ts";
import type { AnswerEvent, Question } from "../chat/answers.ts";
import type { WireMessage } from "../chat/tree.ts";
import { addressOf } from "../base/api.ts";
import type { Words } from "../words/index.ts";
import { pushed } from "./queue.ts";

interface RuntimeSettings extends Omit<PageRuntimeOptions, "locate" | "threads"> {
  readonly headers: () => Readonly<Record<string, string>>;
}

export const makeRuntime = ({ headers, ...rest }: RuntimeSettings): PageRuntime =>
  makePageRuntime({
    ...rest,
    threads: 0,
    locate: (digest) => ({ url: addressOf(`/api/blobs/${digest}`), headers: headers() }),
  });

interface Asking {
  /** Advice by error code. */
  readonly advice: Words["engine"]["advice"];
  readonly question: Question;
  readonly signal: AbortSignal;
  /** Subscribes to news about the wait. */
  readonly listen: (take: (event: AnswerEvent) => void) => void;
}

/** The events of a chat, including its waits. */
export function eventsOf(runtime: PageRuntime, asking: Asking): AsyncGenerator<AnswerEvent, void, void> {
  const { advice, question, signal, listen } = asking;
  return pushed(async (push) => {
    listen(push);
    try {
      for await (const event of runtime.chat(requestOf(question, signal)))
        for (const each of answerEvents(event)) push(each);
    } catch (error) {
      throw explained(error, advice);
    }
  });
}

/** Adds advice to an error without any. */
function explained(error: unknown, advice: Words["engine"]["advice"]): unknown {
  const said = error instanceof AppError ? (advice as Partial<Record<Code, string>>)[error.code] : undefined;
  return said === undefined ? error : new Error(`${messageOf(error).replace(/\.$/, "")}. ${said}`, { cause: error });
}

function requestOf({ model, messages, options, think, tools }: Question, signal: AbortSignal) {
  return {
    model,
    messages: messages.map(readMessage),
    options: parseOptions(options).options,
    signal,
    ...(think === undefined ? {} : { think }),
    ...(tools && tools.length > 0 ? { tools: tools as [] } : {}), // the same form as in a request to the server
  };
}

/** Reads a message like the server does. */
function readMessage({ images, tool_calls, ...message }: WireMessage): Message {
  return {
    ...message,
    ...(images ? { images: images.map((base64) => Uint8Array.from(atob(base64), (char) => char.charCodeAt(0))) } : {}),
    ...(tool_calls ? { tool_calls: tool_calls as NonNullable<Message["tool_calls"]> } : {}), // made by `wireMessages`
  };
}

function answerEvents(event: InferenceEvent): AnswerEvent[] {
  switch (event.kind) {
    case "prompt":
    case "progress":
    case "promptLogprobs":
      return [];
    case "text":
    case "thinking":
      return event.text === "" ? [] : [{ kind: event.kind, text: event.text }];
    case "toolCall": {
      const { name, arguments: args } = event.call.function;
      return [{ kind: "call", call: { name, arguments: args } }];
    }
    case "cutCall":
      return [{ kind: "text", text: event.call.text }];
    case "done":
      return [doneOf(event)];
    default:
      return event satisfies never;
  }
}

function doneOf({ reason, statistics, truncated }: Extract<InferenceEvent, { kind: "done" }>): AnswerEvent {
  if (!statistics) return { kind: "done", reason };
  const stats = {
    promptTokens: statistics.promptEvalCount,
    promptMs: statistics.promptEvalNs / 1e6,
    tokens: statistics.evalCount,
    ms: statistics.evalNs / 1e6,
    loadMs: statistics.loadNs / 1e6,
    wasCut: truncated === true,
  };
  return { kind: "done", reason, stats };
}
