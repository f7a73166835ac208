/** `GET /api/ps`: the models in memory, latest expiry first. */
import { formatTime } from "../../base/index.ts";
import type { LoadedModel } from "../../runtime/portable.ts";
import type { Store, StoredModel } from "../../library/portable.ts";
import type { RouteDeps } from "./deps.ts";
import { modelDetails } from "../models/inspect.ts";
import { isStoredAs } from "../models/loaded.ts";
import { get } from "./route.ts";

export const psRoutes = [
  get("/api/ps", async (deps) => ({ kind: "json", body: { models: await loadedModels(deps) } }), {
    api: "native",
    summary: "The models in memory",
  }),
];

async function loadedModels(deps: RouteDeps): Promise<object[]> {
  return Promise.all(deps.runtime.loaded().map((model) => itemOf(deps, model)));
}

async function itemOf({ store, inspect }: RouteDeps, loaded: LoadedModel): Promise<object> {
  const stored = await storedAs(store, loaded);
  const details = stored && modelDetails(stored, await inspect(stored));
  const name = stored?.displayName ?? loaded.name;
  return {
    name,
    model: name,
    size: loaded.sizeBytes,
    digest: stored && name !== loaded.name ? stored.digest : loaded.digest,
    details: details ? { ...details, parent_model: "" } : UNKNOWN_DETAILS,
    expires_at: formatTime(loaded.expiresAt.getTime()),
    size_vram: loaded.vramBytes,
    ...(loaded.placement && { placement: loaded.placement }),
    ...(loaded.streamed && { streamed: streamedOf(loaded.streamed) }),
    context_length: loaded.ctxLen,
  };
}

const streamedOf = ({ memory, hits, misses, bytes }: NonNullable<LoadedModel["streamed"]>): object => ({
  memory,
  hits,
  misses,
  bytes_read: bytes,
});

/** The name that a model was loaded by; if that was deleted since, another model with the same weights. */
async function storedAs(store: Store, loaded: LoadedModel): Promise<StoredModel | undefined> {
  if (await isStoredAs(store, loaded.name, loaded)) return store.find(loaded.name);
  for (const model of await store.list()) if (await isStoredAs(store, model.displayName, loaded)) return model;
  return undefined;
}

const UNKNOWN_DETAILS = {
  parent_model: "",
  format: "gguf",
  family: "",
  families: null,
  parameter_size: "",
  quantization_level: "",
};
