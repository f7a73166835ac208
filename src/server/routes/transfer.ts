/** `POST /api/pull` and `POST /api/push`: a model from or to its registry, with progress. */
import { t } from "elysia";
import { AppError } from "../../base/index.ts";
import { parseAddress } from "../../library/index.ts";
import { readRequest } from "../http/body.ts";
import type { RouteDeps } from "./deps.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import { progressReply } from "../http/progress.ts";
import { post } from "./route.ts";
import { requireModel } from "../models/find-model.ts";

const fields = {
  model: t.Optional(t.String()),
  /** The former name of `model`. */
  name: t.Optional(t.String()),
  /** Uses http for the registry. */
  insecure: t.Optional(t.Boolean()),
  stream: t.Optional(t.Boolean()),
};

export const PullBody = t.Object(fields, { title: "PullRequest" });
export const PushBody = t.Object(fields, { title: "PushRequest" });

export const transferRoutes = [
  post("/api/pull", pull, {
    api: "native",
    summary: "Download a model from a registry",
    body: PullBody,
    reply: ["ndjson", "json"],
  }),
  post("/api/push", push, {
    api: "native",
    summary: "Upload a model to a registry",
    body: PushBody,
    reply: ["ndjson", "json"],
  }),
];

async function pull({ registry }: RouteDeps, { request, signal, note }: Exchange): Promise<Reply> {
  const body = await readRequest(request, PullBody);
  const model = body.model || body.name;
  if (!model) throw new AppError("bad_request", "invalid model name");
  note({ model });
  const address = parseAddress(model, { insecure: body.insecure === true });
  return progressReply(registry.pull({ address, signal }), body);
}

async function push({ registry }: RouteDeps, { request, signal, note }: Exchange): Promise<Reply> {
  const body = await readRequest(request, PushBody);
  const model = requireModel(body.model || body.name);
  note({ model });
  const address = parseAddress(model, { insecure: body.insecure === true });
  return progressReply(registry.push({ address, signal }), body);
}
