/** `/v1/responses`: chat in the OpenAI Responses API, and the responses that are kept. */
import { join } from "node:path";
import { assert, messageOf, type Fields } from "../../base/index.ts";
import type { ChatRequest } from "../../runtime/portable.ts";
import type { ModelRef } from "../../library/portable.ts";
import { type Options, SAMPLING_DEFAULTS } from "../../engine/index.ts";
import { readRequest } from "../http/body.ts";
import { firstCallOnly } from "../answers/call-ids.ts";
import type { RouteDeps } from "./deps.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import type { AnswerEvent } from "../answers/answer.ts";
import { closeOffers, type McpOffer, offerTools } from "../answers/server-tools.ts";
import { answerWithTools, type ToolEvent } from "../answers/tool-loop.ts";
import { readRequestedServers } from "../responses/mcp-tools.ts";
import { findWithLevel, requireModel } from "../models/find-model.ts";
import { seconds } from "../openai/reply.ts";
import { makeId } from "../http/random-id.ts";
import { ResponseWriter, type StreamEvent } from "../responses/events.ts";
import { readResponsesRequest, type Wanted } from "../responses/request.ts";
import type { Head, ResponseObject } from "../responses/response.ts";
import { inputItems } from "../responses/input-items.ts";
import type { KeptResponses } from "../responses/kept.ts";
import { RecentItems } from "../responses/recent-items.ts";
import { ResponsesBody } from "../schema/responses.ts";
import { warnLeftOut } from "../requests/history.ts";
import { warnDroppedTools } from "../answers/provider-tools.ts";
import type { Frame } from "../http/sse.ts";
import { keptResponsesRoutes, noPrevious, type OpenKept } from "./kept-responses.ts";
import { post, type Route } from "./route.ts";

interface Deps extends RouteDeps {
  readonly items: RecentItems;
  readonly kept: OpenKept;
}

export function responsesRoutes(routeDeps: RouteDeps): Route[] {
  const deps: Deps = { ...routeDeps, items: new RecentItems(), kept: keptOf(routeDeps) };
  return [
    post("/v1/responses", (_, exchange) => respond(deps, exchange), {
      api: "OpenAI",
      summary: "A response to some input",
      body: ResponsesBody,
      reply: ["json", "events"],
    }),
    post("/v1/responses/input_tokens", (_, exchange) => count(deps, exchange), {
      api: "OpenAI",
      summary: "How many tokens the input of a response would have",
      body: ResponsesBody,
    }),
    ...keptResponsesRoutes(deps.kept),
  ];
}

/** Opens the file at the first use: most servers never need it. */
function keptOf({ config: { home, responses: limits }, now }: RouteDeps): OpenKept {
  let opened: Promise<KeptResponses> | undefined;
  const open = async (): Promise<KeptResponses> => {
    const { KeptResponses } = await import("../responses/kept.ts");
    return new KeptResponses(join(home, "responses.db"), limits, () => now().getTime());
  };
  return async () => {
    if (limits.count === 0) return undefined;
    opened ??= open();
    opened.catch(() => (opened = undefined)); // a later request may find the disk mended
    return opened;
  };
}

async function respond(deps: Deps, exchange: Exchange): Promise<Reply> {
  const { body, model, wanted, offers, request } = await readRequestOf(deps, exchange);
  const kept = body.store === false ? undefined : await keptOrNone(deps);
  const now = (): number => seconds(deps.now());
  const parameters = { ...(await deps.inspect(request.ref))?.parameters, ...request.ref.parameters };
  const head = headOf(parameters, { model, body, wanted, createdAt: now(), isKept: kept !== undefined });
  const stages = () => (body.parallel_tool_calls === false ? [firstCallOnly()] : []);
  const events = answerWithTools(deps, request, { offers, note: exchange.note, stages });
  const writer = new ResponseWriter(head, now, (response) => keep(deps, { exchange, body, response, kept }));
  if (!body.stream) return { kind: "json", body: await whole(events, writer) };
  return { kind: "events", frames: frames(events, writer), failed: (error) => [frame(writer.fail(error))] };
}

/** A disk that fails costs only later requests. */
async function keptOrNone({ kept, log }: Deps): Promise<KeptResponses | undefined> {
  try {
    return await kept();
  } catch (error) {
    log.warn("responses cannot be stored: requests cannot continue them", { error: messageOf(error) });
    return undefined;
  }
}

interface Finished {
  readonly exchange: Exchange;
  readonly body: ResponsesBody;
  readonly response: ResponseObject;
  readonly kept: KeptResponses | undefined;
}

/** Keeps a finished response. A failure costs only later requests, so that it is logged. */
function keep(deps: Deps, { exchange: { request }, body, response, kept }: Finished): void {
  if (body.store === false) return;
  const owner = deps.ownerOf(request);
  const { id } = response;
  const input = kept ? inputItems(body.input, (item) => deps.items.find(owner, item)) : [];
  deps.items.keep(owner, response.output);
  try {
    kept?.keep({ owner, id }, { response, input, previous: body.previous_response_id });
  } catch (error) {
    deps.log.warn("a response was not kept", { id, error: messageOf(error) });
  }
}

/** The items of the conversation that a request continues. Throws `bad_request`. */
async function historyOf(deps: Deps, request: Request, id: string | undefined): Promise<readonly Fields[]> {
  if (id === undefined) return [];
  const kept = await deps.kept();
  const { items, missing } = kept?.conversation({ owner: deps.ownerOf(request), id }) ?? { items: [], missing: id };
  if (missing !== undefined) throw noPrevious(missing);
  return items;
}

async function count(deps: Deps, exchange: Exchange): Promise<Reply> {
  const { request, offers } = await readRequestOf(deps, exchange);
  await closeOffers(offers);
  const input_tokens = await deps.runtime.countTokens(request);
  return { kind: "json", body: { object: "response.input_tokens", input_tokens } };
}

async function readRequestOf(deps: Deps, exchange: Exchange) {
  const body = await readRequest(exchange.request, ResponsesBody);
  const model = requireModel(body.model);
  const offers = await offerTools(deps.mcp, readRequestedServers(body), exchange.signal);
  try {
    return { body, model, offers, ...(await readOffered(deps, exchange, { body, model, offers })) };
  } catch (error) {
    await closeOffers(offers);
    throw error;
  }
}

async function readOffered(
  deps: Deps,
  exchange: Exchange,
  { body, model, offers }: { body: ResponsesBody; model: string; offers: readonly McpOffer[] },
) {
  const history = await historyOf(deps, exchange.request, body.previous_response_id);
  const owner = deps.ownerOf(exchange.request);
  const wanted = readResponsesRequest(body, { find: (id) => deps.items.find(owner, id), offers, history });
  exchange.note({ model });
  warnDroppedTools(deps.log, { model, left: wanted.tools.left });
  warnLeftOut(deps.log, { model, left: wanted.leftOut });
  return { wanted, request: await chatRequest(deps, { model, wanted, exchange }) };
}

/** Throws `not_found`. */
async function chatRequest(
  deps: RouteDeps,
  { model, wanted, exchange }: { model: string; wanted: Wanted; exchange: Exchange },
): Promise<ChatRequest & { readonly ref: ModelRef }> {
  const { chat, think, effort: said } = wanted;
  return { model, ...(await findWithLevel(deps, { model, think, said })), ...chat, signal: exchange.signal };
}

function headOf(
  parameters: Options,
  { wanted, ...rest }: Pick<Head, "model" | "body" | "createdAt" | "isKept"> & { wanted: Wanted },
): Head {
  const { temperature, top_p, presence_penalty, frequency_penalty } = {
    ...SAMPLING_DEFAULTS,
    ...parameters,
    ...wanted.chat.options,
  };
  const sampling = { temperature, top_p, presence_penalty, frequency_penalty };
  return { id: makeId("resp"), ...rest, tools: wanted.tools.given, sampling };
}

async function whole(answer: AsyncIterable<AnswerEvent | ToolEvent>, writer: ResponseWriter): Promise<ResponseObject> {
  let response: ResponseObject | undefined;
  for await (const said of answer) for (const event of writer.write(said)) response = event.response ?? response;
  assert(response, "an answer without a response");
  return response;
}

const frame = (event: StreamEvent): Frame => ({ event: event.type, data: event });

async function* frames(
  answer: AsyncIterable<AnswerEvent | ToolEvent>,
  writer: ResponseWriter,
): AsyncGenerator<Frame, void, void> {
  for await (const said of answer) for (const event of writer.write(said)) yield frame(event);
}
