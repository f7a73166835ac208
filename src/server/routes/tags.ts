/** `GET /api/tags`: the models of the store, latest change first. */
import { formatTime } from "../../base/index.ts";
import type { StoredModel } from "../../library/portable.ts";
import type { RouteDeps } from "./deps.ts";
import { modelDetails } from "../models/inspect.ts";
import type { ModelFacts } from "../models/model-facts.ts";
import { get } from "./route.ts";

export const tagsRoutes = [
  get("/api/tags", async (deps) => ({ kind: "json", body: { models: await listModels(deps) } }), {
    api: "native",
    summary: "The models of the store",
  }),
];

async function listModels({ store, inspect, log }: RouteDeps): Promise<object[]> {
  const models = await store.list((path, reason) => log.warn("left out an unreadable manifest", { path, reason }));
  const items: object[] = [];
  for (const model of models)
    items.push(summaryOf(model, { facts: await inspect(model), isOwn: model.root === store.root }));
  return items;
}

function summaryOf(model: StoredModel, { facts, isOwn }: { facts: ModelFacts | undefined; isOwn: boolean }): object {
  const { config } = model;
  const contextLength = config.context_length ?? facts?.gguf.ctxLen;
  const embeddingLength = config.embedding_length ?? facts?.gguf.embeddingLen;
  return {
    name: model.displayName,
    model: model.displayName,
    ...(config.remote_model ? { remote_model: config.remote_model, remote_host: config.remote_host } : {}),
    modified_at: formatTime(model.modifiedAt.getTime()),
    size: model.sizeBytes,
    digest: model.digest,
    details: {
      ...modelDetails(model, facts),
      ...(contextLength ? { context_length: contextLength } : {}),
      ...(embeddingLength ? { embedding_length: embeddingLength } : {}),
    },
    ...(facts ? { capabilities: facts.capabilities } : {}),
    ...(isOwn ? {} : { read_only: true }), // in the store of another server
  };
}
