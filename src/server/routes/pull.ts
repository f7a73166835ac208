/** `POST /api/pull`: pulls a model from its registry, with progress. */
import { AppError } from "../../base/index.ts";
import { parseAddress } from "../../library/index.ts";
import { readRequest } from "../http/body.ts";
import type { RouteDeps } from "./deps.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import { progressReply } from "../http/progress.ts";
import { PullBody } from "../schema/transfer.ts";
import { post } from "./route.ts";

export const pullRoutes = [
  post("/api/pull", pull, {
    api: "native",
    summary: "Download a model from a registry",
    body: PullBody,
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
