/** `POST /api/generate`: the continuation of a prompt; without a prompt, loading and unloading. */
import { AppError, formatTime } from "../../base/index.ts";
import type { GenerateRequest } from "../../runtime/portable.ts";
import { readRequest } from "../http/body.ts";
import { debugInfo } from "../answers/debug-render.ts";
import type { RouteDeps } from "./deps.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import { answerEvents } from "../answers/answer.ts";
import { findThinker } from "../models/find-model.ts";
import { readSettings } from "../requests/request-settings.ts";
import { answerReply } from "../ollama/answer.ts";
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
  const isAsked = request.prompt !== "" || request.suffix !== undefined || (request.images?.length ?? 0) > 0;
  return answerReply(events, {
    model,
    now: deps.now,
    fieldsOf: ({ text, ...more }) => ({ response: text, ...more }),
    isStream: body.stream !== false && isAsked,
  });
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
