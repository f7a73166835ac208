/**
 * One request and its answer: runs a handler, turns its reply or its error into a response, and records the end. Log
 * fields are counts, never text.
 */
import { AppError, type Logger, messageOf, retryAfter } from "../../base/index.ts";
import { Refusal, refusalReply } from "../../gateway/index.ts";
import { CONTENT_CODINGS } from "./content-coding.ts";
import { errorBodyFor, statusOf } from "./errors.ts";
import { NDJSON } from "./ndjson.ts";
import type { HidePaths } from "./private-paths.ts";
import type { Recorder } from "./recorder.ts";
import { idHeaders, makeRequestId } from "./request-id.ts";
import { sse, type Frame } from "./sse.ts";
import { streamed, type Encoding } from "./stream.ts";

export type Reply =
  | { readonly kind: "json"; readonly body: object; readonly status?: 503; readonly contentType?: string }
  | { readonly kind: "text"; readonly body: string; readonly status?: 201; readonly contentType?: string }
  /** Made by a library. */
  | { readonly kind: "made"; readonly response: Response }
  /** Part of an immutable file; without a body if the client has it, or wanted only headers. */
  | { readonly kind: "file"; readonly status: 200 | 206 | 304 | 416; readonly headers: Headers; readonly body?: Blob }
  | { readonly kind: "stream"; readonly values: AsyncGenerator<object, void, void> }
  | {
      readonly kind: "events";
      readonly frames: AsyncGenerator<Frame, void, void>;
      /** The frames that end a failed stream. */
      readonly failed: (error: unknown) => readonly Frame[];
    };

/** A handler's view of its request. */
export interface Exchange {
  readonly request: Request;
  /** Identifies the request to the client and in the log. */
  readonly requestId: string;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
  /** Adds fields to the log line. */
  note(fields: Readonly<Record<string, unknown>>): void;
}

type Handler = (exchange: Exchange) => Reply | Promise<Reply>;

/** Answers a request by a handler; never throws. */
export type Answer = (request: Request, handler: Handler) => Promise<Response>;

export function makeAnswer(parts: { log: Logger; record: Recorder; hidePaths: HidePaths }): Answer {
  const { log, record, hidePaths } = parts;
  const discreet = <T>(encoding: Encoding<T>): Encoding<T> => ({
    ...encoding,
    error: (error) => encoding.error(hidePaths(error)),
  });
  return async (request, handler) => {
    const startedMs = performance.now();
    const requestId = makeRequestId();
    const notes: Record<string, unknown> = { request_id: requestId };
    const named = (response: Response): Response => withHeaders(response, idHeaders(request, requestId));
    const end = (status: number, error?: unknown): void => {
      const ms = Math.round((performance.now() - startedMs) * 10) / 10;
      const failure = error === undefined ? {} : { error: messageOf(error) };
      record(request, { status, ms, notes: { ...notes, ...failure } });
    };
    const note: Exchange["note"] = (fields) => void Object.assign(notes, fields);
    const gone = new AbortController();
    const leave = (): void => gone.abort(new AppError("cancelled", "request canceled")); // waits throw the reason
    request.signal.addEventListener("abort", leave, { once: true });
    if (request.signal.aborted) leave();
    const onEnd = (error?: unknown): void => end(isCancelled(error) ? statusOf(error) : 200, error);
    try {
      const reply = await handler({ request, requestId, signal: gone.signal, note });
      if (reply.kind === "stream") return named(await streamed(reply.values, discreet(NDJSON), { gone, onEnd }));
      if (reply.kind === "events")
        return named(await streamed(reply.frames, discreet(sse(reply.failed)), { gone, onEnd }));
      if (reply.kind === "made") {
        end(reply.response.status);
        return named(reply.response);
      }
      const { status = 200 } = reply;
      end(status);
      if (reply.kind === "file") return named(new Response(reply.body, { status, headers: reply.headers }));
      const type = reply.contentType === undefined ? {} : { "content-type": reply.contentType };
      if (reply.kind === "json") return named(withHeaders(jsonResponse(reply.body, status), type));
      return named(textResponse(reply.body, status, type));
    } catch (error) {
      if (!(error instanceof AppError)) log.error("bug", { error: messageOf(error), stack: (error as Error)?.stack });
      end(statusOf(error), error);
      return errorResponse(request, hidePaths(error), requestId);
    }
  };
}

const isCancelled = (error: unknown): boolean => error instanceof AppError && error.code === "cancelled";

/** Default of `Retry-After`: an answer or a load takes a few seconds. */
const RETRY_AFTER_MS = 5000;

/** An error in the format of the requested API. */
export function errorResponse(request: Request, error: unknown, requestId = makeRequestId()): Response {
  if (error instanceof Refusal) {
    const { status, headers, body } = refusalReply(error, requestId);
    return new Response(body ?? null, { status, headers: { ...headers, "x-request-id": requestId } });
  }
  const status = statusOf(error);
  const response = jsonResponse(errorBodyFor(request)(error, requestId), status);
  const known = error instanceof AppError ? error.retryAfterMs : undefined;
  const retryAfterMs = known ?? (status === 503 ? RETRY_AFTER_MS : undefined);
  const retry = retryAfterMs === undefined ? {} : retryAfter(retryAfterMs);
  const codings: Record<string, string> = status === 415 ? { "accept-encoding": CONTENT_CODINGS } : {};
  return withHeaders(response, { ...idHeaders(request, requestId), ...retry, ...codings });
}

function withHeaders(response: Response, headers: Readonly<Record<string, string>>): Response {
  for (const [name, value] of Object.entries(headers)) response.headers.set(name, value);
  return response;
}

/** A Blob is JSON text already. */
export function jsonResponse(body: object, status: number): Response {
  const text = body instanceof Blob ? body : JSON.stringify(body);
  return new Response(text, { status, headers: { "content-type": "application/json; charset=utf-8" } });
}

export function textResponse(body: string, status: number, headers: Record<string, string> = {}): Response {
  return new Response(body, { status, headers: { "content-type": "text/plain; charset=utf-8", ...headers } });
}
