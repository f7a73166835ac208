/** `POST /api/embed`: a vector for each text; without a text, loading and unloading. */
import { AppError } from "../../base/index.ts";
import { readRequest } from "../http/body.ts";
import type { RouteDeps } from "./deps.ts";
import type { Exchange } from "../http/exchange.ts";
import { findEmbedder } from "../models/find-model.ts";
import { readSettings } from "../requests/request-settings.ts";
import { encodeJson } from "../http/json-pieces.ts";
import { post } from "./route.ts";
import { EmbedBody } from "../schema/embed.ts";

export const embedRoutes = [
  post("/api/embed", async (deps, exchange) => ({ kind: "json", body: await embed(deps, exchange) }), {
    api: "native",
    summary: "A vector for each text",
    body: EmbedBody,
  }),
];

/** The reply as JSON text. */
async function embed(deps: RouteDeps, { request, signal, note }: Exchange): Promise<Blob> {
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
  return encodeJson({ model, embeddings, ...(inputs.length > 0 ? { ...durations, ...counts } : {}) }, signal);
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
