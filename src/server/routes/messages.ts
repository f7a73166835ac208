/** `POST /v1/messages` and `POST /v1/messages/count_tokens`: chats in the Anthropic API. */
import { assert } from "../../base/index.ts";
import type { ChatRequest } from "../../runtime/portable.ts";
import { type Said, streamSteps, wholeMessage } from "../anthropic/events.ts";
import { readRequestedServers } from "../anthropic/mcp-servers.ts";
import { checkThread, readMessagesRequest, requireMaxTokens, requireMessages } from "../anthropic/request.ts";
import { readRequest } from "../http/body.ts";
import { firstCallOnly } from "../answers/call-ids.ts";
import type { RouteDeps } from "./deps.ts";
import { anthropicErrorBody } from "../http/errors.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import { makeId } from "../http/random-id.ts";
import { closeOffers, type McpOffer, offerTools } from "../answers/server-tools.ts";
import { answerWithTools } from "../answers/tool-loop.ts";
import { findWithLevel, requireModel } from "../models/find-model.ts";
import { warnLeftOut } from "../requests/history.ts";
import { warnDroppedTools } from "../answers/provider-tools.ts";
import { MessagesBody } from "../schema/messages.ts";
import type { Frame } from "../http/sse.ts";
import { post } from "./route.ts";

export const messagesRoutes = [
  post("/v1/messages", messages, {
    api: "Anthropic",
    summary: "The next message of a conversation",
    body: MessagesBody,
    reply: ["json", "events"],
  }),
  post("/v1/messages/count_tokens", count, {
    api: "Anthropic",
    summary: "How many tokens a conversation has",
    body: MessagesBody,
  }),
];

async function messages(deps: RouteDeps, exchange: Exchange): Promise<Reply> {
  const body = await readRequest(exchange.request, MessagesBody);
  const model = requireModel(body.model);
  requireMaxTokens(body);
  const { request, singleCall, offers } = await chatRequest(deps, exchange, body);
  let prompt = { promptEvalCount: 0, promptCachedCount: 0 };
  const events = answerWithTools(deps, request, {
    offers,
    note: exchange.note,
    stages: () => (singleCall ? [firstCallOnly()] : []),
    onPrompt: (event) => (prompt = event),
  });
  const head = { id: makeId("msg"), model, stopSequences: body.stop_sequences ?? [], prompt: () => prompt };
  if (!body.stream) {
    const message = await wholeMessage(events, streamSteps(head));
    assert(message, "an answer without a message");
    return { kind: "json", body: message };
  }
  return {
    kind: "events",
    frames: frames(events, streamSteps(head)),
    failed: (error) => [{ event: "error", data: anthropicErrorBody(error, exchange.requestId) }],
  };
}

async function count(deps: RouteDeps, exchange: Exchange): Promise<Reply> {
  const body = await readRequest(exchange.request, MessagesBody);
  requireModel(body.model);
  const { request, offers } = await chatRequest(deps, exchange, body);
  await closeOffers(offers);
  return { kind: "json", body: { input_tokens: await deps.runtime.countTokens(request) } };
}

interface Prepared {
  readonly request: ChatRequest;
  readonly singleCall: boolean;
}

/** Throws `bad_request`, `not_found`, and `upstream` if a tool server does not answer. */
async function chatRequest(
  deps: RouteDeps,
  exchange: Exchange,
  body: MessagesBody,
): Promise<Prepared & { readonly offers: readonly McpOffer[] }> {
  checkThread(body);
  requireMessages(body);
  const offers = await offerTools(deps.mcp, readRequestedServers(body), exchange.signal);
  try {
    return { offers, ...(await offeredRequest(deps, exchange, { body, offers })) };
  } catch (error) {
    await closeOffers(offers);
    throw error;
  }
}

async function offeredRequest(
  deps: RouteDeps,
  exchange: Exchange,
  { body, offers }: { body: MessagesBody; offers: readonly McpOffer[] },
): Promise<Prepared> {
  const model = requireModel(body.model);
  const { singleCall, think, left, leftOut, ...wanted } = readMessagesRequest(body, offers);
  exchange.note({ model });
  warnDroppedTools(deps.log, { model, left });
  warnLeftOut(deps.log, { model, left: leftOut });
  const said = body.thinking ?? body.output_config;
  const found = await findWithLevel(deps, { model, think, said });
  const single = singleCall ? { parallelToolCalls: false } : {};
  return { request: { model, ...found, ...wanted, ...single, signal: exchange.signal }, singleCall };
}

async function* frames(
  answer: AsyncIterable<Said>,
  steps: ReturnType<typeof streamSteps>,
): AsyncGenerator<Frame, void, void> {
  for await (const said of answer) for (const event of steps(said)) yield { event: event.type, data: event };
}

/** `msg_` and 24 hex digits. */
