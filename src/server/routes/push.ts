/** `POST /api/push`: pushes a model to its registry, with progress. */
import { Elysia } from "elysia";
import { parseAddress } from "../../library/index.ts";
import { readRequest } from "../http/body.ts";
import type { RouteDeps } from "./deps.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import { requireModel } from "../models/find-model.ts";
import { progressReply } from "../http/progress.ts";
import { PushBody } from "../schema/transfer.ts";
import { describe } from "../schema/describe.ts";

export const pushRoutes = (deps: RouteDeps) =>
  new Elysia().post("/api/push", ({ request }) => deps.answer(request, (exchange) => push(deps, exchange)), {
    parse: "none",
    detail: describe({
      api: "native",
      summary: "Upload a model to a registry",
      body: PushBody,
      reply: ["ndjson", "json"],
    }),
  });

async function push({ registry }: RouteDeps, { request, signal, note }: Exchange): Promise<Reply> {
  const body = await readRequest(request, PushBody);
  const model = requireModel(body.model || body.name);
  note({ model });
  const address = parseAddress(model, { insecure: body.insecure === true });
  return progressReply(registry.push({ address, signal }), body);
}
