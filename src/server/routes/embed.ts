/**
 * `POST /api/embed`: a vector for each text; without a text, loading and unloading. `POST /api/embeddings`, which it
 * supersedes: the vector of one prompt, which must fit the context.
 */
import { t } from "elysia";
import { AppError } from "../../base/index.ts";
import { readRequest } from "../http/body.ts";
import type { RouteDeps } from "./deps.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import { findEmbedder, requireModel } from "../models/find-model.ts";
import { readSettings } from "../requests/request-settings.ts";
import { encodeJson } from "../http/json-pieces.ts";
import { post } from "./route.ts";
import { inferenceFields, Int } from "../schema/message.ts";

const { model, options, keep_alive } = inferenceFields;

export const EmbedBody = t.Object(
  {
    model,
    /** A text or a list of texts: see the route. */
    input: t.Optional(t.Unknown()),
    truncate: t.Optional(t.Boolean()),
    dimensions: t.Optional(Int),
    options,
    keep_alive,
  },
  { title: "EmbedRequest" },
);

export const EmbeddingsBody = t.Object(
  { model, prompt: t.Optional(t.String()), options, keep_alive },
  { title: "EmbeddingRequest" },
);

export const embedRoutes = [
  post("/api/embed", embed, { api: "native", summary: "A vector for each text", body: EmbedBody }),
  post("/api/embeddings", embeddings, {
    api: "native",
    summary: "The vector of one text; superseded by /api/embed",
    body: EmbeddingsBody,
  }),
];

async function embed(deps: RouteDeps, { request, signal, note }: Exchange): Promise<Reply> {
  const body = await readRequest(request, EmbedBody);
  const { model = "", truncate, dimensions } = body;
  note({ model });
  const { keepAliveMs, options } = readSettings(body, deps.log);
  const inputs = inputsOf(body.input);
  const ref = await findEmbedder(deps.store, model);
  const { embeddings, totalNs, loadNs, promptEvalCount } = await deps.runtime.embed({
    model,
    ref,
    inputs,
    signal,
    options,
    ...(truncate === undefined ? {} : { truncate }),
    ...(dimensions === undefined ? {} : { dimensions }),
    ...(keepAliveMs === undefined ? {} : { keepAliveMs }),
  });
  note({ inputs: inputs.length, prompt_eval_count: promptEvalCount });
  const durations = { total_duration: totalNs, load_duration: loadNs };
  const counts = promptEvalCount > 0 ? { prompt_eval_count: promptEvalCount } : {};
  const answer = { model, embeddings, ...(inputs.length > 0 ? { ...durations, ...counts } : {}) };
  return { kind: "json", body: await encodeJson(answer, signal) };
}

/** One text or several; a lone empty one counts as absent, but in a list it counts. Throws `bad_request`. */
function inputsOf(input: unknown): readonly string[] {
  if (input === undefined || input === "") return [];
  const texts: unknown[] = Array.isArray(input) ? input : [input];
  return texts.map((text) => {
    if (typeof text !== "string") throw new AppError("bad_request", "invalid input type");
    return text.toWellFormed();
  });
}

async function embeddings(deps: RouteDeps, { request, signal, note }: Exchange): Promise<Reply> {
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
  return { kind: "json", body: { embedding: Array.from(found[0] ?? []) } };
}
