/**
 * `POST /models/load` and `POST /models/unload`, which llama-server's router has for its own page and Open WebUI: a
 * load is answered once it is done.
 */
import { t } from "elysia";
import { AppError } from "../../base/index.ts";
import { readRequest } from "../http/body.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import { findModel, requireModel } from "../models/find-model.ts";
import { loadStatus, type LoadStatus } from "../models/loaded.ts";
import { post } from "./route.ts";
import type { ModelRef } from "../../library/portable.ts";
import type { RouteDeps } from "./deps.ts";

const LoadBody = t.Object({ model: t.Optional(t.String()) }, { title: "LoadRequest" });

export const modelLoadingRoutes = [
  post("/models/load", load, { api: "native", summary: "Loads a model", body: LoadBody }),
  post("/models/unload", unload, { api: "native", summary: "Unloads a model once it is idle", body: LoadBody }),
];

const SUCCESS: Reply = { kind: "json", body: { success: true } };

async function load(deps: RouteDeps, exchange: Exchange): Promise<Reply> {
  const { ref, status } = await modelIn(deps, exchange);
  if (status === "loaded") throw new AppError("bad_request", "model is already running");
  // an empty list of texts only loads, whatever the model is for
  await deps.runtime.embed({ model: ref.displayName, ref, inputs: [], options: {}, signal: exchange.signal });
  return SUCCESS;
}

async function unload(deps: RouteDeps, exchange: Exchange): Promise<Reply> {
  const { ref, status } = await modelIn(deps, exchange);
  if (status === "unloaded") throw new AppError("bad_request", "model is not running");
  deps.runtime.unload(ref);
  return SUCCESS;
}

async function modelIn(
  deps: RouteDeps,
  { request, note }: Exchange,
): Promise<{ readonly ref: ModelRef; readonly status: LoadStatus }> {
  const { model } = await readRequest(request, LoadBody);
  const name = requireModel(model);
  note({ model: name });
  const ref = await findModel(deps.store, name);
  return { ref, status: await loadStatus(deps, ref.displayName) };
}
