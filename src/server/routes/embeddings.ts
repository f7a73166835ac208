/** `POST /api/embeddings`, superseded by `/api/embed`: the vector of one prompt, which must fit the context. */
import { readRequest } from "../http/body.ts";
import type { RouteDeps } from "./deps.ts";
import type { Exchange } from "../http/exchange.ts";
import { findEmbedder, requireModel } from "../models/find-model.ts";
import { readSettings } from "../requests/request-settings.ts";
import { post } from "./route.ts";
import { EmbeddingsBody } from "../schema/embed.ts";

export const embeddingsRoutes = [
  post("/api/embeddings", async (deps, exchange) => ({ kind: "json", body: await embeddings(deps, exchange) }), {
    api: "native",
    summary: "The vector of one text; superseded by /api/embed",
    body: EmbeddingsBody,
  }),
];

async function embeddings(
  deps: RouteDeps,
  { request, signal, note }: Exchange,
): Promise<{ embedding: readonly number[] }> {
  const body = await readRequest(request, EmbeddingsBody);
  const { keepAliveMs, options } = readSettings(body, deps.log);
  const model = requireModel(body.model);
  note({ model });
  const ref = await findEmbedder(deps.store, model);
  const { embeddings: found, promptEvalCount } = await deps.runtime.embed({
    model,
    ref,
    inputs: body.prompt ? [body.prompt] : [],
    truncate: false,
    signal,
    options,
    ...(keepAliveMs === undefined ? {} : { keepAliveMs }),
  });
  note({ prompt_eval_count: promptEvalCount });
  return { embedding: Array.from(found[0] ?? []) };
}
