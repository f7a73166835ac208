/** `POST /api/tokenize` and `POST /api/detokenize`: text to the ids of a model, and back. */
import { t } from "elysia";
import { AppError, parseKeepAlive } from "../../base/index.ts";
import { parseOptions } from "../../engine/index.ts";
import { readRequest } from "../http/body.ts";
import type { RouteDeps } from "./deps.ts";
import type { Exchange, Reply } from "../http/exchange.ts";
import { findModel, loadedModel, requireModel } from "../models/find-model.ts";
import { post } from "./route.ts";
import { inferenceFields, Int } from "../schema/message.ts";

const { model, options, keep_alive } = inferenceFields;

export const TokenizeBody = t.Object(
  {
    model,
    options,
    keep_alive,
    content: t.Optional(t.String()),
    /** Other names of `content`. */
    text: t.Optional(t.String()),
    prompt: t.Optional(t.String()),
    add_special: t.Optional(t.Boolean()),
    parse_special: t.Optional(t.Boolean()),
    with_pieces: t.Optional(t.Boolean()),
  },
  { title: "TokenizeRequest" },
);
export type TokenizeBody = typeof TokenizeBody.static;

export const DetokenizeBody = t.Object(
  { model, options, keep_alive, tokens: t.Optional(t.Array(Int)) },
  { title: "DetokenizeRequest" },
);
export type DetokenizeBody = typeof DetokenizeBody.static;

/** Maximum number of characters, and of ids, in one request: a runner serves no other request while it encodes. */
const CONTENT_CHARS_MAX = 2 ** 21;

const TOKENIZE = { api: "native", summary: "The token ids of a text", body: TokenizeBody } as const;
const DETOKENIZE = { api: "native", summary: "The text of token ids", body: DetokenizeBody } as const;

export const tokenizeRoutes = [
  post("/api/tokenize", (deps, exchange) => tokenize(deps, exchange), TOKENIZE),
  post("/tokenize", (deps, exchange) => tokenize(deps, exchange, loadedModel(deps)), TOKENIZE),
  post("/api/detokenize", (deps, exchange) => detokenize(deps, exchange), DETOKENIZE),
  post("/detokenize", (deps, exchange) => detokenize(deps, exchange, loadedModel(deps)), DETOKENIZE),
];

/** @param other the model of a request that names none */
async function tokenize(deps: RouteDeps, exchange: Exchange, other?: string): Promise<Reply> {
  const body = withModel(await readRequest(exchange.request, TokenizeBody), other);
  const shared = await sharedFields(deps, exchange, body);
  const text = body.content ?? body.text ?? body.prompt;
  if (text === undefined && other === undefined) throw new AppError("bad_request", "content is required");
  if (text === undefined) return { kind: "json", body: { model: shared.model, tokens: [] } }; // as llama-server does
  checkLength("content", text.length, "characters");
  const { tokens, pieces, totalNs, loadNs } = await deps.runtime.tokenize({
    ...shared,
    text,
    addSpecial: body.add_special ?? false,
    parseSpecial: body.parse_special ?? true,
    wantsPieces: body.with_pieces ?? false,
  });
  const items = pieces ? tokens.map((id, i) => ({ id, piece: pieceOf(pieces[i] ?? new Uint8Array()) })) : tokens;
  const durations = { total_duration: totalNs, load_duration: loadNs };
  return { kind: "json", body: { model: shared.model, tokens: items, ...durations } };
}

async function detokenize(deps: RouteDeps, exchange: Exchange, other?: string): Promise<Reply> {
  const body = withModel(await readRequest(exchange.request, DetokenizeBody), other);
  const shared = await sharedFields(deps, exchange, body);
  if (!body.tokens && other === undefined) throw new AppError("bad_request", "tokens is required");
  if (!body.tokens) return { kind: "json", body: { model: shared.model, content: "" } }; // as llama-server does
  checkLength("tokens", body.tokens.length, "ids");
  const { text, totalNs, loadNs } = await deps.runtime.detokenize({ ...shared, tokens: body.tokens });
  const durations = { total_duration: totalNs, load_duration: loadNs };
  return { kind: "json", body: { model: shared.model, content: text, ...durations } };
}

async function sharedFields(deps: RouteDeps, { note, signal }: Exchange, body: DetokenizeBody) {
  const keepAliveMs = parseKeepAlive(body.keep_alive);
  const model = requireModel(body.model);
  note({ model });
  const ref = await findModel(deps.store, model);
  const { options } = parseOptions(body.options);
  return { model, ref, options, signal, ...(keepAliveMs === undefined ? {} : { keepAliveMs }) };
}

const withModel = <T extends { model?: string }>(body: T, other: string | undefined): T =>
  body.model || other === undefined ? body : { ...body, model: other };

function checkLength(field: string, length: number, unit: string): void {
  if (length <= CONTENT_CHARS_MAX) return;
  throw new AppError("too_large", `${field}: expected at most ${CONTENT_CHARS_MAX} ${unit}, got ${length}`);
}

/** Text if the bytes are valid text, else the bytes: a token may be half a character. */
function pieceOf(bytes: Uint8Array): string | number[] {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return Array.from(bytes);
  }
}
