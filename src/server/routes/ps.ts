/** `GET /api/ps`: the models in memory, the one that expires last first. */
import { Elysia } from "elysia";
import { formatTime } from "../../base/duration.ts";
import type { LoadedModel } from "../../runtime/runtime.ts";
import type { RouteDeps } from "../deps.ts";
import { modelDetails } from "../inspect.ts";
import { describe } from "../schema/describe.ts";

export const psRoutes = (deps: RouteDeps) =>
  new Elysia().get(
    "/api/ps",
    ({ request }) => deps.answer(request, async () => ({ kind: "json", body: { models: await loadedModels(deps) } })),
    { detail: describe({ api: "native", summary: "The models in memory", reply: "json" }) },
  );

async function loadedModels(deps: RouteDeps): Promise<object[]> {
  return Promise.all(deps.runtime.loaded().map((model) => itemOf(deps, model)));
}

async function itemOf({ store, inspect }: RouteDeps, loaded: LoadedModel): Promise<object> {
  const stored = await store.find(loaded.name).catch(() => undefined); // it may have been deleted since
  const details = stored && modelDetails(stored, await inspect(stored));
  return {
    name: loaded.name,
    model: loaded.name,
    size: loaded.sizeBytes,
    digest: loaded.digest,
    details: details ? { ...details, parent_model: "" } : UNKNOWN_DETAILS,
    expires_at: formatTime(loaded.expiresAt.getTime()),
    size_vram: loaded.vramBytes,
    context_length: loaded.ctxLen,
  };
}

const UNKNOWN_DETAILS = {
  parent_model: "",
  format: "gguf",
  family: "",
  families: null,
  parameter_size: "",
  quantization_level: "",
};
