/**
 * `GET /v1/models` and `GET /v1/models/:model`: the store, in the format of the OpenAI API, or of the Anthropic API for
 * its clients.
 */
import { AppError } from "../../base/index.ts";
import { parentOf } from "../../library/index.ts";
import type { StoredModel } from "../../library/portable.ts";
import { anthropicModel, anthropicModels } from "../anthropic/models.ts";
import type { RouteDeps } from "./deps.ts";
import { isAnthropic } from "../http/errors.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import { findModel } from "../models/find-model.ts";
import { loadStatus } from "../models/loaded.ts";
import { seconds } from "../openai/reply.ts";
import { get } from "./route.ts";

const PATH = "/v1/models/";

export const openaiModelRoutes = [
  get("/v1/models", list, { api: "OpenAI", summary: "The models of the store" }),
  get("/models", list, { api: "OpenAI", summary: "The models of the store" }), // as in llama-server
  // names contain slashes
  get(`${PATH}*`, retrieve, { api: "OpenAI", summary: "One model" }),
];

/** With the `status` that llama-server's router gives its models. */
async function list(deps: RouteDeps, { request }: Exchange): Promise<Reply> {
  const { store, log } = deps;
  const models = await store.list((path, reason) => log.warn("left out an unreadable manifest", { path, reason }));
  if (isAnthropic(request)) return { kind: "json", body: anthropicModels(models) };
  const data = models.map(async (model) => ({
    ...modelOf(model, model.displayName, models),
    status: { value: await loadStatus(deps, model.displayName) },
  }));
  return { kind: "json", body: { object: "list", data: await Promise.all(data) } };
}

async function retrieve({ store }: RouteDeps, { request }: Exchange): Promise<Reply> {
  const id = decodeName(new URL(request.url).pathname.slice(PATH.length));
  const model = await findModel(store, id);
  if (isAnthropic(request)) return { kind: "json", body: anthropicModel(model, id) };
  const hasAdapters = model.paths.adapters.length > 0;
  return { kind: "json", body: modelOf(model, id, hasAdapters ? await store.list() : []) };
}

function decodeName(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    throw new AppError("bad_request", "model: expected a name in URL encoding", { cause: error });
  }
}

/** A model with adapters names its base, as vLLM does. @param all models of the store */
function modelOf(model: StoredModel, id: string, all: readonly StoredModel[]): object {
  const { modifiedAt, name } = model;
  const parent = parentOf(all, model)?.displayName;
  const base = parent === undefined ? {} : { root: id, parent };
  return { id, object: "model", created: seconds(modifiedAt), owned_by: name.namespace, ...base };
}
