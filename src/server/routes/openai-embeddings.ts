/** `POST /v1/embeddings`: embed in the OpenAI API. */
import { AppError } from "../../base/index.ts";
import { readRequest } from "../http/body.ts";
import { encodeJson } from "../http/json-pieces.ts";
import type { RouteDeps } from "./deps.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import { findModel, requireModel } from "../models/find-model.ts";
import { warnUnknown } from "../requests/unknown-options.ts";
import { EmbeddingBody, embeddingList, toEncode, toInputs } from "../openai/embedding.ts";
import { limitsOf, toOptions } from "../openai/settings.ts";
import { post } from "./route.ts";

export const openaiEmbeddingRoutes = [
  post("/v1/embeddings", embed, { api: "OpenAI", summary: "Embeddings of texts", body: EmbeddingBody }),
];

async function embed(deps: RouteDeps, { request, signal, note }: Exchange): Promise<Reply> {
  const body = await readRequest(request, EmbeddingBody);
  const model = requireModel(body.model);
  note({ model });
  const encode = toEncode(body);
  const inputs = toInputs(body.input);
  const { options, unknown } = toOptions({ options: body.options ?? {} }, undefined);
  warnUnknown(deps.log, { model, unknown });
  const { dimensions } = body;
  if (dimensions !== undefined && dimensions < 1) {
    throw new AppError("bad_request", `dimensions: expected 1 or more, got ${dimensions}`);
  }
  const ref = await findModel(deps.store, model);
  const result = await deps.runtime.embed({
    model,
    ref,
    inputs,
    options,
    signal,
    ...limitsOf(body),
    ...(dimensions === undefined ? {} : { dimensions }),
  });
  note({ prompt_eval_count: result.promptEvalCount });
  return { kind: "json", body: await encodeJson(embeddingList(result, { model, encode }), signal) };
}
