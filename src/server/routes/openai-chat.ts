/** `POST /v1/chat/completions`: chat in the OpenAI API. */
import type { ChatRequest } from "../../runtime/portable.ts";
import { thinkInTemplate } from "../answers/template-fields.ts";
import { withoutBlanks } from "../answers/blanks.ts";
import { readRequest } from "../http/body.ts";
import { firstCallOnly, withCallIds } from "../answers/call-ids.ts";
import { debugInfo } from "../answers/debug-render.ts";
import type { RouteDeps } from "./deps.ts";
import { openaiErrorBody } from "../http/errors.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import { answerEvents, type ReportEvent } from "../answers/answer.ts";
import { findWithLevel, requireModel } from "../models/find-model.ts";
import { warnLeftOut } from "../requests/history.ts";
import { warnUnknown } from "../requests/unknown-options.ts";
import { ChatCompletionBody, customNames, toChat } from "../openai/chat.ts";
import { choicesOf, readCount, seeded } from "../openai/choices.ts";
import { chunks, completion, type ChatReplyOptions } from "../openai/chat-reply.ts";
import { hasFunctions, withTools } from "../openai/functions.ts";
import { makeHead } from "../openai/reply.ts";
import { limitsOf, progressOption, readPromptLogprobs, reportsOf, toOptions, toThink } from "../openai/settings.ts";
import { post } from "./route.ts";

const CHAT = {
  api: "OpenAI",
  summary: "The next message of a conversation",
  body: ChatCompletionBody,
  reply: ["json", "events"],
} as const;

export const openaiChatRoutes = [
  post("/v1/chat/completions", chat, CHAT),
  post("/chat/completions", chat, CHAT), // as in llama-server
];

async function chat(deps: RouteDeps, exchange: Exchange): Promise<Reply> {
  const given = await readRequest(exchange.request, ChatCompletionBody);
  const body = withTools(given);
  const request = await chatRequest(deps, { body, exchange });
  if (body._debug_render_only) return { kind: "json", body: await renderOnly(deps, request) };
  const single = () => (body.parallel_tool_calls === false ? [firstCallOnly()] : []);
  const count = readCount(body.n, { prompts: 1 });
  const reports = reportsOf(body);
  const report = { report: (event: ReportEvent) => event };
  const choices = choicesOf({ prompts: 1, count, signal: request.signal }, ({ choice, onPrompt, signal }) => {
    const stages = [withoutBlanks(), withCallIds(), ...single()];
    const { promptLogprobs, ...asked } = request;
    const measured = choice > 0 || promptLogprobs === undefined ? {} : { promptLogprobs };
    const own = { ...asked, ...measured, options: seeded(request.options, choice), signal };
    return answerEvents(deps, own, { note: exchange.note, stages, onPrompt, ...report });
  });
  const options: ChatReplyOptions = {
    head: makeHead("chatcmpl", { model: request.model, now: deps.now }),
    includeUsage: body.stream_options?.include_usage ?? false,
    wantsLogprobs: body.logprobs ?? false,
    promptLogprobs: body.prompt_logprobs,
    reports,
    customTools: customNames(body),
    hasFunctions: hasFunctions(given),
  };
  if (!body.stream) return { kind: "json", body: await completion(choices, options) };
  return { kind: "events", frames: chunks(choices, options), failed: (error) => [{ data: openaiErrorBody(error) }] };
}

/** A completion without text, but with the prompt. */
async function renderOnly({ runtime, now }: RouteDeps, request: ChatRequest): Promise<object> {
  const message = { role: "assistant", content: "" };
  const choices = [{ index: 0, message, finish_reason: null }];
  const head = makeHead("chatcmpl", { model: request.model, now });
  return { object: "chat.completion", ...head, choices, ...(await debugInfo(runtime, request)) };
}

async function chatRequest(
  deps: RouteDeps,
  { body, exchange }: { body: ChatCompletionBody; exchange: Exchange },
): Promise<ChatRequest> {
  const model = requireModel(body.model);
  exchange.note({ model });
  const said = body.reasoning?.effort ?? body.reasoning_effort;
  const { options, unknown } = toOptions(body, body.max_completion_tokens ?? body.max_tokens);
  warnUnknown(deps.log, { model, unknown });
  const { left, ...asked } = toChat(body);
  warnLeftOut(deps.log, { model, left });
  const more = { ...limitsOf(body), ...progressOption(body), ...readPromptLogprobs(body) };
  const request = { model, ...asked, options, ...more, signal: exchange.signal };
  const think = toThink(said) ?? thinkInTemplate(asked);
  return { ...request, ...(await findWithLevel(deps, { model, think, said })) };
}
