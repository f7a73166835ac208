/** `POST /api/chat`: the next message of a conversation; without messages, loading and unloading. */
import { formatTime } from "../../base/index.ts";
import type { ChatRequest, Message, Tool, ToolCall } from "../../runtime/portable.ts";
import { readRequest } from "../http/body.ts";
import { readTemplateFields, thinkInTemplate } from "../answers/template-fields.ts";
import { withCallIds } from "../answers/call-ids.ts";
import { debugInfo } from "../answers/debug-render.ts";
import type { RouteDeps } from "./deps.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import { answerEvents } from "../answers/answer.ts";
import { findThinker, requireModel } from "../models/find-model.ts";
import { readArguments, warnLeftOut, type LeftOut } from "../requests/history.ts";
import { readSettings } from "../requests/request-settings.ts";
import { answerReply } from "../ollama/answer.ts";
import { parseToolChoice } from "../answers/tool-choice.ts";
import { ChatBody } from "../schema/chat.ts";
import type { Message as MessageBody, Tool as ToolBody } from "../schema/message.ts";
import { post } from "./route.ts";

export const chatRoutes = [
  post("/api/chat", chat, {
    api: "native",
    summary: "The next message of a conversation",
    body: ChatBody,
    reply: ["ndjson", "json"],
  }),
  post("/api/count", count, {
    api: "native",
    summary: "How many tokens the prompt of a conversation has, whole, and the context of its model",
    body: ChatBody,
  }),
];

async function readChat(deps: RouteDeps, exchange: Exchange): Promise<{ body: ChatBody; request: ChatRequest }> {
  const body = await readRequest(exchange.request, ChatBody);
  const settings = readSettings(body, deps.log);
  const model = requireModel(body.model);
  exchange.note({ model });
  const variables = readTemplateFields(body);
  const think = settings.think ?? thinkInTemplate(variables);
  const ref = await findThinker(deps, { model, think: settings.think });
  const toolChoice = parseToolChoice(body.tool_choice);
  const left: LeftOut = [];
  const request: ChatRequest = {
    model,
    ref,
    messages: (body.messages ?? []).map((message) => messageOf(message, left)),
    signal: exchange.signal,
    ...settings,
    ...variables,
    ...(think === undefined ? {} : { think }),
    ...(toolChoice === undefined ? {} : { toolChoice }),
    ...(body.tools && body.tools.length > 0 ? { tools: body.tools.map(toolOf) } : {}),
    ...(body.outside ? { isOutside: true } : {}),
  };
  warnLeftOut(deps.log, { model, left });
  return { body, request };
}

/** Loads the model. */
async function count(deps: RouteDeps, exchange: Exchange): Promise<Reply> {
  const { request } = await readChat(deps, exchange);
  const tokens = await deps.runtime.countTokens(request);
  const { model, ref } = request;
  const ctxLen = deps.runtime.loaded().find(({ name }) => name === (ref?.displayName ?? model))?.ctxLen;
  return { kind: "json", body: { model, count: tokens, ...(ctxLen === undefined ? {} : { context_length: ctxLen }) } };
}

async function chat(deps: RouteDeps, exchange: Exchange): Promise<Reply> {
  const { body, request } = await readChat(deps, exchange);
  const { model } = request;
  if (body._debug_render_only) {
    const head = { model, created_at: formatTime(deps.now().getTime()), message: { role: "", content: "" } };
    return { kind: "json", body: { ...head, done: false, ...(await debugInfo(deps.runtime, request)) } };
  }
  const events = answerEvents(deps, request, { note: exchange.note, stages: [withCallIds()] });
  return answerReply(events, {
    model,
    now: deps.now,
    fieldsOf: ({ text, ...more }) => ({ message: { role: "assistant", content: text, ...more } }),
    isStream: body.stream !== false && request.messages.length > 0,
  });
}

function messageOf({ role = "", content = "", tool_calls, ...rest }: MessageBody, left: LeftOut): Message {
  const calls = tool_calls?.map((call): ToolCall => {
    const { name = "", arguments: args, index } = call.function ?? {};
    const named = { name, arguments: readArguments(args, left), ...(index === undefined ? {} : { index }) };
    return { function: named, ...(call.id ? { id: call.id } : {}) };
  });
  return { ...rest, role: role.toLowerCase(), content, ...(calls && calls.length > 0 ? { tool_calls: calls } : {}) };
}

function toolOf({ type = "function", function: body = {} }: ToolBody): Tool {
  return { type, function: { ...body, name: body.name ?? "" } };
}
