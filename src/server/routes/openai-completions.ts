/** `POST /v1/completions`: generate in the OpenAI API. */
import { Elysia } from "elysia";
import type { GenerateRequest } from "../../runtime/portable.ts";
import { withoutBlanks } from "../answers/blanks.ts";
import { readRequest } from "../http/body.ts";
import type { RouteDeps } from "./deps.ts";
import { openaiErrorBody } from "../http/errors.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import { answerEvents } from "../answers/answer.ts";
import { findWisher, requireModel } from "../models/find-model.ts";
import { warnUnknown } from "../requests/unknown-options.ts";
import { CompletionBody, toGenerate } from "../openai/completion.ts";
import { textChunks, textCompletion, type CompletionReplyOptions } from "../openai/completion-reply.ts";
import { makeHead } from "../openai/reply.ts";
import { limitsOf, toOptions, toThink } from "../openai/settings.ts";
import { describe } from "../schema/describe.ts";

export const openaiCompletionRoutes = (deps: RouteDeps) =>
  new Elysia().post("/v1/completions", ({ request }) => deps.answer(request, (exchange) => complete(deps, exchange)), {
    parse: "none",
    detail: describe({
      api: "OpenAI",
      summary: "The continuation of a prompt",
      body: CompletionBody,
      reply: ["json", "events"],
    }),
  });

async function complete(deps: RouteDeps, exchange: Exchange): Promise<Reply> {
  const body = await readRequest(exchange.request, CompletionBody);
  const request = await generateRequest(deps, { body, exchange });
  const events = answerEvents(deps, request, { note: exchange.note, stages: [withoutBlanks()] });
  const options: CompletionReplyOptions = {
    head: makeHead("cmpl", { model: request.model, now: deps.now }),
    echo: body.echo ? request.prompt : "",
    includeUsage: body.stream_options?.include_usage ?? false,
    wantsLogprobs: request.logprobs !== undefined,
  };
  if (!body.stream) return { kind: "json", body: await textCompletion(events, options) };
  return { kind: "events", frames: textChunks(events, options), failed: (error) => [{ data: openaiErrorBody(error) }] };
}

async function generateRequest(
  deps: RouteDeps,
  { body, exchange }: { body: CompletionBody; exchange: Exchange },
): Promise<GenerateRequest> {
  const model = requireModel(body.model);
  exchange.note({ model });
  const said = body.reasoning_effort;
  const { options, unknown } = toOptions(body, body.max_tokens);
  warnUnknown(deps.log, { model, unknown });
  const request = { model, ...toGenerate(body), options, ...limitsOf(body), signal: exchange.signal };
  return { ...request, ...(await findWisher(deps, { model, think: toThink(said), said })) };
}
