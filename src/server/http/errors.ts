/** Failures as HTTP: the table from error code to status, and the error bodies of each API. */
import { AppError, type Code, messageOf } from "../../base/index.ts";
import { Refusal } from "../../gateway/index.ts";

const STATUS = {
  bad_request: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  bad_file: 500,
  storage: 500,
  too_large: 413,
  busy: 503,
  cancelled: 499,
  timeout: 408,
  unsupported: 400,
  unsupported_coding: 415,
  runner: 500,
  registry: 500,
  upstream: 502,
} as const satisfies Record<Code, number>;

/**
 * The status of any thrown value: a refusal of the hooks has its own; a value that is not an `AppError` is a bug of
 * ours.
 */
export function statusOf(error: unknown): number {
  if (error instanceof Refusal) return error.status;
  if (!(error instanceof AppError)) return 500;
  // an outage of the database ends; a full disk does not by itself
  return error.code === "storage" && error.retryAfterMs !== undefined ? 503 : STATUS[error.code];
}

/** Makes the body of an error reply; `requestId` is the request's id. */
type ErrorBody = (error: unknown, requestId: string) => object;

/** The shape of the native API. */
export function errorBody(error: unknown): { error: string } {
  return { error: messageOf(error) };
}

const OPENAI_TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "invalid_request_error",
  404: "not_found_error",
  413: "invalid_request_error",
  415: "invalid_request_error",
};

/** A request that OpenAI refuses with certain fields, which its clients check. */
export class InvalidRequest extends AppError {
  readonly fields: { readonly param: string | null; readonly code: string | null };

  constructor(code: Code, message: string, { param, word }: { param?: string; word?: string } = {}) {
    super(code, message);
    this.fields = { param: param ?? null, code: word ?? null };
  }
}

/** The shape of the OpenAI API. */
export function openaiErrorBody(error: unknown) {
  const status = statusOf(error);
  if (error instanceof InvalidRequest) {
    return { error: { message: error.message, type: "invalid_request_error", ...error.fields } };
  }
  const type = OPENAI_TYPES[status] ?? "api_error";
  return { error: { message: messageOf(error), type, param: null, code: status === 401 ? "invalid_api_key" : null } };
}

const LLAMA_TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "invalid_request_error",
  415: "invalid_request_error",
  503: "unavailable_error",
};

/** The shape of llama-server. */
export function llamaErrorBody(error: unknown) {
  const code = statusOf(error);
  return { error: { code, message: messageOf(error), type: LLAMA_TYPES[code] ?? "server_error" } };
}

const LLAMA_PATH = new RegExp(
  `^/(${[
    "props|slots|lora-adapters|apply-template|tokenize|detokenize",
    "completions?|infill|embeddings?|rerank|reranking|models|chat/completions",
  ].join("|")})(/|$)`,
  "i",
);

/** True for the paths of llama-server that no other API has. */
export const isLlamaPath = (path: string): boolean => LLAMA_PATH.test(path);

const ANTHROPIC_TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  415: "invalid_request_error",
  503: "overloaded_error",
};

/** The shape of the Anthropic API. */
export function anthropicErrorBody(error: unknown, requestId: string) {
  const type = ANTHROPIC_TYPES[statusOf(error)] ?? "api_error";
  const errorCode = error instanceof AppError ? error.errorCode : undefined;
  const details = errorCode === undefined ? {} : { details: { error_code: errorCode } };
  return { type: "error", error: { type, message: messageOf(error), ...details }, request_id: requestId };
}

/** The error format of the requested API. */
export function errorBodyFor(request: Request): ErrorBody {
  if (isLlamaPath(new URL(request.url).pathname)) return llamaErrorBody;
  if (!isV1(request)) return errorBody;
  return isAnthropic(request) ? anthropicErrorBody : openaiErrorBody;
}

/** True if a request is for `/v1`, the path of the OpenAI and Anthropic APIs. */
export const isV1 = (request: Request): boolean => /^\/v1(\/|$)/i.test(new URL(request.url).pathname);

/** True if a client of the Anthropic API sent a request to `/v1`. */
export function isAnthropic(request: Request): boolean {
  return request.headers.has("anthropic-version") || /^\/v1\/messages(\/|$)/i.test(new URL(request.url).pathname);
}
