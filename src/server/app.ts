/**
 * The HTTP application: guards in front (origin, host, key), the routes, and the plain-text answers for everything
 * else. It translates requests to calls of the parts that `main.ts` built.
 */
import { Elysia } from "elysia";
import { messageOf } from "../base/index.ts";
import type { AppDeps, RouteDeps } from "./routes/deps.ts";
import { errorResponse, makeAnswer } from "./http/exchange.ts";
import { makeGate } from "./gate.ts";
import { noSuchRoute } from "./no-route.ts";
import { makeInspect } from "./models/inspect.ts";
import { metered } from "./metrics/metered.ts";
import { makeMetrics } from "./metrics/metrics.ts";
import { showHttps } from "./http/https-url.ts";
import { makeRequestSpans } from "./http/request-spans.ts";
import { makeHidePaths, type HidePaths } from "./http/private-paths.ts";
import { makeRecentRequests } from "./http/recent.ts";
import { makeRecorder } from "./http/recorder.ts";
import { accountRoutes } from "./routes/account.ts";
import { blobRoutes } from "./routes/blobs.ts";
import { catalogueRoutes } from "./routes/catalogue.ts";
import { chatRoutes } from "./routes/chat.ts";
import { createRoutes } from "./routes/create.ts";
import { embedRoutes } from "./routes/embed.ts";
import { healthRoutes } from "./routes/health.ts";
import { nameRoutes } from "./routes/names.ts";
import { systemRoutes } from "./routes/system.ts";
import { transferRoutes } from "./routes/transfer.ts";
import { uiRoutes } from "./routes/ui.ts";
import { generateRoutes } from "./routes/generate.ts";
import { llamaServerRoutes } from "./routes/llama-server.ts";
import { mcpServerRoutes } from "./routes/mcp-server.ts";
import { mcpRoutes } from "./routes/mcp.ts";
import { modelLoadingRoutes } from "./routes/model-loading.ts";
import { messagesRoutes } from "./routes/messages.ts";
import { makeHookAnswers } from "./routes/hooks.ts";
import { hooksAdminRoutes } from "./routes/hooks-admin.ts";
import { nativeCompletionRoutes } from "./routes/native-completion.ts";
import { openaiChatRoutes } from "./routes/openai-chat.ts";
import { openaiCompletionRoutes } from "./routes/openai-completions.ts";
import { openaiAudioRoutes } from "./routes/openai-audio.ts";
import { openaiEmbeddingRoutes } from "./routes/openai-embeddings.ts";
import { openapiRoutes } from "./routes/openapi.ts";
import { openaiModelRoutes } from "./routes/openai-models.ts";
import { partsRoutes } from "./routes/parts.ts";
import { psRoutes } from "./routes/ps.ts";
import { rerankRoutes } from "./routes/rerank.ts";
import { responsesRoutes } from "./routes/responses.ts";
import type { Route } from "./routes/route.ts";
import { showRoutes } from "./routes/show.ts";
import { tagsRoutes } from "./routes/tags.ts";
import { tokenizeRoutes } from "./routes/tokenize.ts";
import { describe } from "./schema/describe.ts";
import { makeFindAsset } from "../page/assets.ts";

export const makeApp = (parts: AppDeps) => makeHandlers(parts).app;

/** The application, the hooks' part of it for a separate listener, and its metrics. */
export function makeHandlers(parts: AppDeps) {
  const { log } = parts;
  const metrics = makeMetrics(parts.runtime, { gateway: parts.gateway, dialect: parts.config.metricsDialect });
  const keyNames = new WeakMap<Request, string>();
  const owners = new WeakMap<Request, string>();
  const recent = makeRecentRequests();
  const spans = parts.tracer && makeRequestSpans(parts.tracer, () => parts.now().getTime());
  const record = makeRecorder({ log, metrics, recent, now: parts.now, routes: () => app.routes, spans, keyNames });
  const deps: RouteDeps = {
    ...parts,
    runtime: metered(parts.runtime, metrics),
    metrics,
    recent,
    dispatch: async (request) => app.handle(request),
    answer: makeAnswer({ log, record, hidePaths: hidesPaths(parts) }),
    inspect: makeInspect(parts),
    findAsset: makeFindAsset(),
    ownerOf: (request) => owners.get(request) ?? "",
  };
  const hooks = makeHookAnswers({ hooks: parts.gateway?.ingress, record, count: metrics.hook, spans });
  const gate = makeGate({ ...parts, isHook: hooks.isMeant, keyNames, owners });
  // Elysia finds the path at a fixed position in the URL by default: a short host name would move it past the checks.
  const app = new Elysia({ handler: { standardHostname: false } })
    .onRequest(({ request, set, server }) => {
      showHttps(request);
      const hooked = hooks.answer(request, () => server?.requestIP(request)?.address);
      if (hooked) return hooked;
      const refusal = gate(request, set.headers);
      return refusal && refuse(request, refusal);
    })
    .onError(({ code, error, request }) => {
      if (code === "NOT_FOUND") return refuse(request, noSuchRoute(request, app.routes));
      log.error("bug", { error: messageOf(error) });
      return refuse(request, errorResponse(request, error));
    });
  for (const { method, path, handler, note } of [...routes(deps), ...openapiRoutes(() => app)]) {
    app.route(
      method,
      path,
      ({ request, params, server }) =>
        deps.answer(request, (exchange) =>
          handler(deps, exchange, { params, peer: server?.requestIP(request)?.address }),
        ),
      { config: {}, parse: "none", detail: note ? describe(note) : { hide: true } },
    );
  }

  function refuse(request: Request, response: Response): Response {
    record(request, { status: response.status });
    return response;
  }

  return { app, hooks, metrics, findAsset: deps.findAsset };
}

const hidesPaths = ({ store, library, config }: AppDeps): HidePaths =>
  makeHidePaths({ models: [store.root, ...library.others], home: config.home });

/** All routes except the API's description, which describes them. */
const routes = (deps: RouteDeps): Route[] => [
  ...uiRoutes,
  ...accountRoutes,
  ...healthRoutes,
  ...systemRoutes,
  ...catalogueRoutes(),
  ...generateRoutes,
  ...chatRoutes,
  ...mcpRoutes,
  ...mcpServerRoutes,
  ...messagesRoutes,
  ...embedRoutes,
  ...rerankRoutes,
  ...responsesRoutes(deps),
  ...tagsRoutes,
  ...showRoutes(),
  ...partsRoutes,
  ...tokenizeRoutes,
  ...nativeCompletionRoutes,
  ...llamaServerRoutes,
  ...modelLoadingRoutes,
  ...psRoutes,
  ...createRoutes,
  ...transferRoutes,
  ...nameRoutes,
  ...blobRoutes,
  ...openaiChatRoutes,
  ...openaiCompletionRoutes,
  ...openaiAudioRoutes,
  ...openaiEmbeddingRoutes,
  ...openaiModelRoutes,
  ...hooksAdminRoutes(),
];
