/** `POST /infill`: the text between two others, for editors that speak to llama-server. */
import { answerEvents } from "../answers/answer.ts";
import { readGrammar } from "../answers/grammar-fields.ts";
import { readRequest } from "../http/body.ts";
import { errorBody } from "../http/errors.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import { findModel, loadedModel, requireModel } from "../models/find-model.ts";
import { fillFrames, InfillBody, piecesOf, toFill, wholeFill } from "../openai/fill.ts";
import { limitsOf, toOptions } from "../openai/settings.ts";
import { warnUnknown } from "../requests/unknown-options.ts";
import type { RouteDeps } from "./deps.ts";
import { post } from "./route.ts";

export const infillRoutes = [
  post("/infill", infill, {
    api: "native",
    summary: "The text between two others",
    body: InfillBody,
    reply: ["json", "events"],
  }),
];

async function infill(deps: RouteDeps, exchange: Exchange): Promise<Reply> {
  const body = await readRequest(exchange.request, InfillBody);
  const model = requireModel(body.model || loadedModel(deps));
  exchange.note({ model });
  const ref = await findModel(deps.store, model);
  const { options, unknown } = toOptions(body, body.n_predict);
  warnUnknown(deps.log, { model, unknown });
  const asked = { ...toFill(body), ...readGrammar(body), ...limitsOf(body) };
  const request = { model, ref, options, ...asked, signal: exchange.signal };
  const pieces = piecesOf(answerEvents(deps, request, { note: exchange.note }), body);
  const about = { model, fields: body.response_fields };
  if (!body.stream) return { kind: "json", body: await wholeFill(pieces, about) };
  return { kind: "events", frames: fillFrames(pieces, about), failed: (error) => [{ data: errorBody(error) }] };
}
