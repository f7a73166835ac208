/** `POST /api/create`: a new model, told step by step. Without streaming, the last step is the answer. */
import { Elysia } from "elysia";
import { readRequest } from "../body.ts";
import { createRequest } from "../create-request.ts";
import type { RouteDeps } from "../deps.ts";
import type { Exchange, Reply } from "../exchange.ts";
import { progressReply } from "../progress.ts";
import { CreateBody } from "../schema/create.ts";
import { describe } from "../schema/describe.ts";

export const createRoutes = (deps: RouteDeps) =>
  new Elysia().post("/api/create", ({ request }) => deps.answer(request, (exchange) => create(deps, exchange)), {
    parse: "none",
    detail: describe({
      api: "native",
      summary: "Make a model of files, another model or a Modelfile",
      body: CreateBody,
      reply: ["ndjson", "json"],
    }),
  });

async function create({ library }: RouteDeps, { request, signal, note }: Exchange): Promise<Reply> {
  const body = await readRequest(request, CreateBody);
  note({ model: body.model || body.name });
  const steps = library.create(await createRequest(body, library), { signal });
  return progressReply(steps, body);
}
