/**
 * `POST /api/copy`: another name for a model; the blobs are shared. `DELETE /api/delete`: a model, and its unshared
 * blobs. If the weights are among these, its runner ends, too, once it is idle, because it would hold memory and disk
 * space under a name that no longer exists.
 */
import { t } from "elysia";
import { AppError } from "../../base/index.ts";
import { type ModelName, parseReference, type StoredModel } from "../../library/portable.ts";
import { fileLayers, layersOf } from "../../library/index.ts";
import { readRequest } from "../http/body.ts";
import type { RouteDeps } from "./deps.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import { requireModel } from "../models/find-model.ts";
import { del, post } from "./route.ts";

export const CopyBody = t.Object(
  { source: t.Optional(t.String()), destination: t.Optional(t.String()) },
  { title: "CopyRequest" },
);

export const DeleteBody = t.Object(
  {
    model: t.Optional(t.String()),
    /** The former name of `model`. */
    name: t.Optional(t.String()),
  },
  { title: "DeleteRequest" },
);

export const nameRoutes = [
  post("/api/copy", copy, { api: "native", summary: "Copy a model", body: CopyBody, reply: "empty" }),
  del("/api/delete", remove, { api: "native", summary: "Delete a model", body: DeleteBody, reply: "empty" }),
];

async function remove(deps: RouteDeps, { request, note }: Exchange): Promise<Reply> {
  const { library, store, runtime } = deps;
  const body = await readRequest(request, DeleteBody);
  const model = requireModel(body.model || body.name);
  note({ model });
  const name = checkedName(model, "name");
  const entry = await store.load(model).catch(() => undefined); // a model that cannot be read can still be deleted
  if (!(await library.remove(name))) throw new AppError("not_found", `model '${model}' not found`);
  if (entry && !(await store.list()).some((other) => sharesWeights(other, entry))) runtime.unload(entry);
  return { kind: "text", body: "" };
}

/** True if a runner uses the same files for both models; it reads one projector and one draft. */
function sharesWeights(a: StoredModel, b: StoredModel): boolean {
  const digests = ({ layers }: StoredModel): string =>
    JSON.stringify(
      [
        layersOf(layers, "model"),
        layersOf(layers, "adapter"),
        fileLayers(layers),
        layersOf(layers, "projector").slice(0, 1),
        layersOf(layers, "draft").slice(0, 1),
      ].map((group) => group.map(({ digest }) => digest)),
    );
  return digests(a) === digests(b);
}

async function copy({ library }: RouteDeps, { request, note }: Exchange): Promise<Reply> {
  const { source = "", destination = "" } = await readRequest(request, CopyBody);
  note({ model: source, destination });
  const from = checkedName(source, "source");
  const to = checkedName(destination, "destination");
  if (!(await library.copy({ from, to }))) throw new AppError("not_found", `model ${JSON.stringify(source)} not found`);
  return { kind: "text", body: "" };
}

function checkedName(text: string, what: "name" | "source" | "destination"): ModelName {
  try {
    return parseReference(text);
  } catch (error) {
    throw new AppError("bad_request", `${what} ${JSON.stringify(text)} is invalid`, { cause: error });
  }
}
