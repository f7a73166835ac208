/** `POST /api/pull`: pulls a model from its registry, with progress. */
import { Elysia } from "elysia";
import { AppError } from "../../base/index.ts";
import { parseAddress } from "../../library/index.ts";
import { readRequest } from "../http/body.ts";
import type { RouteDeps } from "./deps.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import { progressReply } from "../http/progress.ts";
import { PullBody } from "../schema/transfer.ts";
import { describe } from "../schema/describe.ts";

export const pullRoutes = (deps: RouteDeps) =>
  new Elysia().post("/api/pull", ({ request }) => deps.answer(request, (exchange) => pull(deps, exchange)), {
    parse: "none",
    detail: describe({
      api: "native",
      summary: "Download a model from a registry",
      body: PullBody,
      reply: ["ndjson", "json"],
    }),
  });

async function pull({ registry }: RouteDeps, { request, signal, note }: Exchange): Promise<Reply> {
  const body = await readRequest(request, PullBody);
  const model = body.model || body.name;
  if (!model) throw new AppError("bad_request", "invalid model name");
  note({ model });
  const address = parseAddress(model, { insecure: body.insecure === true });
  return progressReply(registry.pull({ address, signal }), body);
}
