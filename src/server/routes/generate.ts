/** `POST /api/generate`: the continuation of a prompt; without a prompt, loading and unloading. */
import { AppError, formatTime } from "../../base/index.ts";
import type { GenerateRequest } from "../../runtime/portable.ts";
import { readRequest } from "../http/body.ts";
import { debugInfo } from "../answers/debug-render.ts";
import type { RouteDeps } from "./deps.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import { answerEvents, collect, doneFields, type AnswerEvent } from "../answers/answer.ts";
import { findThinker } from "../models/find-model.ts";
import { readSettings } from "../requests/request-settings.ts";
import { logprobsField } from "../answers/logprobs.ts";
import { GenerateBody } from "../schema/generate.ts";
import { post } from "./route.ts";

export const generateRoutes = [
  post("/api/generate", generate, {
    api: "native",
    summary: "The continuation of a prompt",
    body: GenerateBody,
    reply: ["ndjson", "json"],
  }),
];

async function generate(deps: RouteDeps, exchange: Exchange): Promise<Reply> {
  const body = await readRequest(exchange.request, GenerateBody);
  const model = body.model ?? "";
  exchange.note({ model });
  const request = await generateRequest(deps, { body, exchange });
  if (body._debug_render_only) {
    const head = { model, created_at: formatTime(deps.now().getTime()), response: "" };
    return { kind: "json", body: { ...head, done: false, ...(await debugInfo(deps.runtime, request)) } };
  }
  const events = answerEvents(deps, request, { note: exchange.note });
  const at = { model, now: deps.now };
  const isAsked = request.prompt !== "" || request.suffix !== undefined || (request.images?.length ?? 0) > 0;
  if (body.stream !== false && isAsked) return { kind: "stream", values: chunks(events, at) };
  return { kind: "json", body: await whole(events, at) };
}

async function generateRequest(
  deps: RouteDeps,
  { body, exchange }: { body: GenerateBody; exchange: Exchange },
): Promise<GenerateRequest> {
  const model = body.model ?? "";
  const { system, template, context, suffix, images, raw = false, prompt = "" } = body;
  const settings = readSettings(body, deps.log);
  const ref = await findThinker(deps, { model, think: settings.think });
  if (raw && (template || system || (context && context.length > 0))) {
    throw new AppError("bad_request", "raw mode does not support template, system, or context");
  }
  const isUnload = settings.keepAliveMs === 0 && prompt === "" && !suffix && !images?.length;
  if (body.force && !isUnload)
    throw new AppError("bad_request", 'force: expected "keep_alive": 0 beside it, and no prompt');
  return {
    model,
    ref,
    prompt,
    raw,
    signal: exchange.signal,
    ...settings,
    ...(body.force ? { force: true } : {}),
    ...(suffix ? { suffix } : {}),
    ...(system ? { system } : {}),
    ...(template ? { template } : {}),
    ...(context ? { context } : {}),
    ...(images ? { images } : {}),
  };
}

interface At {
  readonly model: string;
  readonly now: () => Date;
}

/** One object per event. */
async function* chunks(events: AsyncIterable<AnswerEvent>, { model, now }: At): AsyncGenerator<object, void, void> {
  for await (const event of events) {
    const head = { model, created_at: formatTime(now().getTime()) };
    switch (event.kind) {
      case "text":
        yield { ...head, response: event.text, done: false, ...logprobsField(event.logprobs) };
        break;
      case "thinking":
        yield { ...head, response: "", thinking: event.text, done: false, ...logprobsField(event.logprobs) };
        break;
      case "toolCall":
        yield { ...head, response: "", tool_calls: [event.call], done: false };
        break;
      case "cutCall":
        yield { ...head, response: event.call.text, done: false };
        break;
      case "done":
        yield { ...head, response: "", ...doneFields(event) };
        break;
      default:
        return event satisfies never;
    }
  }
}

/** All events in one object. */
async function whole(events: AsyncIterable<AnswerEvent>, { model, now }: At): Promise<object> {
  const { text, thinking, calls, cutCall, logprobs, done } = await collect(events);
  const extras = { ...(thinking === "" ? {} : { thinking }), ...(calls.length > 0 ? { tool_calls: calls } : {}) };
  return {
    model,
    created_at: formatTime(now().getTime()),
    response: text + (cutCall?.text ?? ""),
    ...extras,
    ...doneFields(done),
    ...logprobsField(logprobs),
  };
}
