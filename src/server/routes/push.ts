/** `POST /api/push`: pushes a model to its registry, with progress. */
import { parseAddress } from "../../library/index.ts";
import { readRequest } from "../http/body.ts";
import type { RouteDeps } from "./deps.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import { requireModel } from "../models/find-model.ts";
import { progressReply } from "../http/progress.ts";
import { PushBody } from "../schema/transfer.ts";
import { post } from "./route.ts";

export const pushRoutes = [
  post("/api/push", push, {
    api: "native",
    summary: "Upload a model to a registry",
    body: PushBody,
    reply: ["ndjson", "json"],
  }),
];

async function push({ registry }: RouteDeps, { request, signal, note }: Exchange): Promise<Reply> {
  const body = await readRequest(request, PushBody);
  const model = requireModel(body.model || body.name);
  note({ model });
  const address = parseAddress(model, { insecure: body.insecure === true });
  return progressReply(registry.push({ address, signal }), body);
}
