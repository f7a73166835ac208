/** `POST /api/rerank`, `/v1/rerank` and llama-server's names: ranks documents by relevance to a query, best first. */
import { t } from "elysia";
import { AppError, parseKeepAlive } from "../../base/index.ts";
import type { RankResult } from "../../runtime/portable.ts";
import { readRequest } from "../http/body.ts";
import type { RouteDeps } from "./deps.ts";
import type { Exchange } from "../http/exchange.ts";
import { findModel, loadedModel, requireModel } from "../models/find-model.ts";
import { parseOptions } from "../../engine/index.ts";
import { warnUnknown } from "../requests/unknown-options.ts";
import { post } from "./route.ts";
import { inferenceFields, Int } from "../schema/message.ts";

const { model, options, keep_alive, truncate } = inferenceFields;

export const RerankBody = t.Object(
  {
    model,
    query: t.Optional(t.String()),
    /** Texts, or objects with a `text`. */
    documents: t.Optional(t.Array(t.Unknown())),
    /** Another name of `documents` for llama-server's routes, and whether their answer has the texts. */
    texts: t.Optional(t.Array(t.String())),
    return_text: t.Optional(t.Boolean()),
    /** Number of results; all by default. */
    top_n: t.Optional(Int),
    /** True includes the texts in the answer. */
    return_documents: t.Optional(t.Boolean()),
    /** True returns the model's raw scores instead of numbers from 0 to 1. */
    raw_scores: t.Optional(t.Boolean()),
    truncate,
    options,
    keep_alive,
  },
  { title: "RerankRequest" },
);
export type RerankBody = typeof RerankBody.static;

/** Maximum number of documents of one request: each is a forward pass of the model. */
const DOCUMENTS_MAX = 2048;

const SUMMARY = "Documents by how well they fit a query";

export const rerankRoutes = [
  post("/api/rerank", (deps, exchange) => rerank(deps, exchange, nativeFields), {
    api: "native",
    summary: SUMMARY,
    body: RerankBody,
  }),
  post("/v1/rerank", (deps, exchange) => rerank(deps, exchange, usageFields), {
    api: "OpenAI",
    summary: SUMMARY,
    body: RerankBody,
  }),
  ...["/rerank", "/reranking", "/v1/reranking"].map((path) =>
    post(path, llamaRerank, { api: "native", summary: SUMMARY, body: RerankBody }),
  ),
];

/** Ranks like llama-server: scores are the model's unmodified ones; for `texts` the answer is a list, as in TEI. */
async function llamaRerank(deps: RouteDeps, exchange: Exchange): Promise<{ kind: "json"; body: object }> {
  const body = await readRequest(exchange.request, RerankBody);
  const { texts, return_text: returns = false } = body;
  const model = body.model || loadedModel(deps);
  const documents = body.documents ?? texts ?? [];
  const asked = { ...body, raw_scores: body.raw_scores ?? true, documents, ...(model === undefined ? {} : { model }) };
  const answer = await ranked(deps, exchange, { body: asked, more: usageFields });
  if (!texts) return { kind: "json", body: answer };
  const list = answer.results.map(({ index, relevance_score: score }) => ({
    index,
    score,
    ...(returns ? { text: texts[index] } : {}),
  }));
  return { kind: "json", body: list };
}

/** Fields of an answer besides its results. */
type MoreFields = (result: RankResult) => object;

const nativeFields: MoreFields = ({ totalNs, loadNs, promptEvalCount }) => ({
  total_duration: totalNs,
  load_duration: loadNs,
  prompt_eval_count: promptEvalCount,
});

const usageFields: MoreFields = ({ promptEvalCount: count }) => ({
  id: `rerank-${crypto.randomUUID().replaceAll("-", "")}`,
  object: "list",
  usage: { prompt_tokens: count, total_tokens: count },
});

async function rerank(deps: RouteDeps, exchange: Exchange, more: MoreFields): Promise<{ kind: "json"; body: object }> {
  const body = await readRequest(exchange.request, RerankBody);
  return { kind: "json", body: await ranked(deps, exchange, { body, more }) };
}

interface Ranked {
  readonly model: string;
  readonly results: readonly { readonly index: number; readonly relevance_score: number }[];
}

async function ranked(
  deps: RouteDeps,
  { signal, note }: Exchange,
  { body, more }: { readonly body: RerankBody; readonly more: MoreFields },
): Promise<Ranked> {
  const model = requireModel(body.model);
  note({ model });
  const keepAliveMs = parseKeepAlive(body.keep_alive);
  const { query = "", top_n: most = Infinity, return_documents: returns = false, truncate } = body;
  if (query.trim() === "") throw new AppError("bad_request", "query: expected a text, got none");
  if (most < 1) throw new AppError("bad_request", `top_n: expected 1 or more, got ${most}`);
  const documents = textsOf(body.documents);
  const { options, unknown } = parseOptions(body.options ?? {});
  warnUnknown(deps.log, { model, unknown });
  const ref = await findModel(deps.store, model);
  const result = await deps.runtime.rank({
    model,
    ref,
    query: query.toWellFormed(),
    documents,
    options,
    signal,
    ...(truncate === undefined ? {} : { truncate }),
    ...(keepAliveMs === undefined ? {} : { keepAliveMs }),
  });
  note({ documents: documents.length, prompt_eval_count: result.promptEvalCount });
  const given = body.raw_scores ? result.scores : result.relevances;
  const results = documents
    .map((text, index) => ({ index, relevance_score: given[index] ?? 0, text, score: result.scores[index] ?? 0 }))
    .sort((a, b) => b.score - a.score || a.index - b.index)
    .slice(0, most)
    .map(({ index, relevance_score, text }) => ({
      index,
      relevance_score,
      ...(returns ? { document: { text } } : {}),
    }));
  return { model, ...more(result), results };
}

function textsOf(documents: readonly unknown[] = []): string[] {
  if (documents.length === 0) throw new AppError("bad_request", "documents: expected an array of texts, got none");
  if (documents.length > DOCUMENTS_MAX) {
    throw new AppError("bad_request", `documents: expected at most ${DOCUMENTS_MAX}, got ${documents.length}`);
  }
  return documents.map((document, i) => {
    const text = typeof document === "object" && document !== null ? (document as { text?: unknown }).text : document;
    if (typeof text !== "string") throw new AppError("bad_request", `documents[${i}]: expected a text, or {"text": …}`);
    return text.toWellFormed();
  });
}
