/** `POST /api/create`: a new model, with progress. Without streaming, the last step is the answer. */
import { type CreateRequest, parseAddress, type Progress } from "../../library/index.ts";
import { readRequest } from "../http/body.ts";
import type { RouteDeps } from "./deps.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import { progressReply } from "../http/progress.ts";
import { CreateBody } from "../schema/create.ts";
import { post } from "./route.ts";

export const createRoutes = [
  post("/api/create", create, {
    api: "native",
    summary: "Make a model of files, another model or a Modelfile",
    body: CreateBody,
    reply: ["ndjson", "json"],
  }),
];

async function create(deps: RouteDeps, { request, signal, note }: Exchange): Promise<Reply> {
  const body = await readRequest(request, CreateBody);
  note({ model: body.model || body.name });
  const { createRequest, idleInfo } = await import("../ollama/create-request.ts"); // loads the readers of model files
  const wanted = await createRequest(body, deps.library);
  const idle = idleInfo(body.info).slice(0, 16);
  if (idle.length > 0)
    deps.log.warn("create: ignored fields of 'info' without an effect", {
      model: body.model || body.name,
      fields: idle,
    });
  return progressReply(withBase(deps, { wanted, insecure: body.insecure === true, signal }), body);
}

/** Pulls a missing base first, with its progress; a pulled base stays if the client disconnects. */
async function* withBase(
  { store, registry, library }: RouteDeps,
  { wanted, insecure, signal }: { wanted: CreateRequest; insecure: boolean; signal: AbortSignal },
): AsyncGenerator<Progress, void, void> {
  const { base } = wanted;
  if (base !== undefined && !(await store.find(base))) {
    const address = parseAddress(base, { insecure });
    for await (const step of registry.pull({ address, signal })) if (step.status !== "success") yield step;
  }
  yield* library.create(wanted, { signal });
}
