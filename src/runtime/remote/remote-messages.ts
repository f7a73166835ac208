/** Messages to and from a remote model server: `/api/chat` requests, and its answers. */
import { Type } from "@sinclair/typebox";
import { type Parsed, reader } from "../../base/schema.ts";
import type { ChatRequest, InferenceEvent, Message, ToolCall } from "../requests/runtime.ts";

const count = () => Type.Optional(Type.Integer({ minimum: 0 }));

const Call = Type.Object({
  id: Type.Optional(Type.String()),
  function: Type.Object({
    index: Type.Optional(Type.Integer()),
    name: Type.String(),
    arguments: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  }),
});

/** One line of an answer. */
export const answerLine = reader(
  Type.Object({
    error: Type.Optional(Type.String()),
    message: Type.Optional(
      Type.Object({
        content: Type.Optional(Type.String()),
        thinking: Type.Optional(Type.String()),
        tool_calls: Type.Optional(Type.Array(Call)),
      }),
    ),
    done: Type.Optional(Type.Boolean()),
    done_reason: Type.Optional(Type.String()),
    truncated: Type.Optional(Type.Boolean()),
    total_duration: count(),
    load_duration: count(),
    prompt_eval_count: count(),
    prompt_eval_duration: count(),
    eval_count: count(),
    eval_duration: count(),
  }),
);
export type AnswerLine = Parsed<typeof answerLine>;

export const tokenCount = reader(
  Type.Object({ count: Type.Integer({ minimum: 0 }), context_length: Type.Optional(Type.Integer({ minimum: 1 })) }),
);

const Listed = Type.Object({ name: Type.String(), capabilities: Type.Optional(Type.Unknown()) });
export const modelList = reader(Type.Object({ models: Type.Array(Listed) }));

type SaidCall = NonNullable<NonNullable<AnswerLine["message"]>["tool_calls"]>[number];

/** The body of a request, without the local fields (signal, session). */
export function bodyOf(request: ChatRequest): object {
  const { model, messages, tools, options, format, grammar, think, toolChoice, truncate, shift, keepAliveMs } = request;
  return {
    model,
    messages: messages.map(messageBody),
    options,
    ...(request.isOutside ? { outside: true } : {}),
    ...(request.templateVariables ? { chat_template_kwargs: request.templateVariables } : {}),
    ...(tools ? { tools } : {}),
    ...(format === undefined ? {} : { format }),
    ...(grammar ? grammarField(grammar) : {}),
    ...(think === undefined ? {} : { think }),
    ...(toolChoice === undefined ? {} : { tool_choice: toolChoice }),
    ...(truncate === undefined ? {} : { truncate }),
    ...(shift === undefined ? {} : { shift }),
    ...(keepAliveMs === undefined ? {} : { keep_alive: keepAliveMs === Infinity ? -1 : `${keepAliveMs}ms` }),
  };
}

function grammarField(grammar: NonNullable<ChatRequest["grammar"]>): object {
  if (grammar.kind === "gbnf") return { grammar: grammar.text };
  return grammar.kind === "regex" ? { regex: grammar.pattern } : { choice: grammar.texts };
}

/** That API places images before the text. */
function messageBody({ images, ...message }: Message): object {
  return { ...message, ...(images ? { images: images.map((image) => Buffer.from(image).toString("base64")) } : {}) };
}

export function* eventsOf(line: AnswerLine): Generator<InferenceEvent, void, void> {
  const { content = "", thinking = "", tool_calls: calls = [] } = line.message ?? {};
  if (thinking !== "") yield { kind: "thinking", text: thinking };
  if (content !== "") yield { kind: "text", text: content };
  for (const call of calls) yield { kind: "toolCall", call: callOf(call) };
  if (!line.done) return;
  yield {
    kind: "done",
    reason: line.done_reason === "length" ? "length" : "stop",
    ...(line.truncated ? { truncated: true } : {}),
    statistics: {
      totalNs: line.total_duration ?? 0,
      loadNs: line.load_duration ?? 0,
      promptEvalCount: line.prompt_eval_count ?? 0,
      promptCachedCount: 0,
      promptEvalNs: line.prompt_eval_duration ?? 0,
      evalCount: line.eval_count ?? 0,
      evalNs: line.eval_duration ?? 0,
    },
  };
}

function callOf({ id, function: { index, name, arguments: args = {} } }: SaidCall): ToolCall {
  const called = { name, arguments: args, ...(index === undefined ? {} : { index }) };
  return { function: called, ...(id === undefined ? {} : { id }) };
}
