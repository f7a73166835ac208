/** `POST /api/parts`: the files of a model, by digest, for clients that run it elsewhere, such as the page. */
import { t } from "elysia";
import { basename } from "node:path";
import { AppError } from "../../base/index.ts";
import type { ModelParts } from "../../page/engine/runtime.ts";
import type { ModelRef } from "../../library/portable.ts";
import type { RouteDeps } from "./deps.ts";
import { findModel, requireModel } from "../models/find-model.ts";
import { readRequest } from "../http/body.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import { post } from "./route.ts";

export const PartsBody = t.Object({ model: t.Optional(t.String()) }, { title: "PartsRequest" });

export const partsRoutes = [
  post("/api/parts", parts, { api: "native", summary: "What a model is made of", body: PartsBody }),
];

async function parts({ store }: RouteDeps, { request }: Exchange): Promise<Reply> {
  const { model } = await readRequest(request, PartsBody);
  return { kind: "json", body: partsOf(await findModel(store, requireModel(model))) };
}

function partsOf(model: ModelRef): ModelParts {
  const fileOf = (path: string): ModelParts["weights"] => {
    const digest = basename(path).replace("-", ":");
    const layer = model.layers.find((each) => each.digest === digest);
    if (!layer)
      throw new AppError("unsupported", `${model.displayName}: its files are not blobs, so they cannot be fetched`);
    return { digest, size: layer.size };
  };
  const { name, displayName, digest, paths, config, parameters, messages, template, system } = model;
  return {
    name,
    displayName,
    digest,
    weights: fileOf(paths.model),
    adapters: paths.adapters.map(fileOf),
    ...(paths.projectors[0] === undefined ? {} : { projector: fileOf(paths.projectors[0]) }),
    config,
    parameters,
    messages,
    ...(template === undefined ? {} : { template }),
    ...(system === undefined ? {} : { system }),
    ...(paths.files.length === 0 ? {} : { files: paths.files.map(({ name, path }) => ({ name, ...fileOf(path) })) }),
  };
}
