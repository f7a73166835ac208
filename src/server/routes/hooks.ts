/**
 * Everything below `hooks.path`: passed to the ingress unchanged, before the guards of the model API, because webhooks
 * bring their own credentials, use any host name, and never come from a page. The path can change at run time, so this
 * is not an Elysia route.
 */
import { type HookReply, type Ingress, isOver, Refusal, refusalReply, type RunNews } from "../../gateway/index.ts";
import type { CountHook } from "../metrics/gateway-metrics.ts";
import { capped } from "../metrics/label-values.ts";
import { decodedPath } from "../http/raw-target.ts";
import type { Recorder } from "../http/recorder.ts";
import type { RequestSpans } from "../http/request-spans.ts";
import { makeRequestId } from "../http/request-id.ts";
import { sse, type Frame } from "../http/sse.ts";
import { streamed } from "../http/stream.ts";

/** The address at the other end of a request's socket. */
type Peer = () => string | undefined;

export interface HookAnswers {
  /** Undefined: the request is not for a hook. */
  answer(request: Request, peer: Peer): Promise<Response> | undefined;
  /** For a listener that serves only hooks. */
  answerAlone(request: Request, peer: Peer): Promise<Response>;
  /** True if a proxy that decodes paths first could read this path as a hook's. */
  isMeant(pathname: string): boolean;
}

/** Endpoints, and mappings of all configurations since the start. */
const ROUTES_MAX = 2000;

interface HookParts {
  readonly record: Recorder;
  readonly count: CountHook;
  /** Undefined: tracing is off. */
  readonly spans?: RequestSpans | undefined;
}

export function makeHookAnswers({ hooks, ...parts }: HookParts & { hooks: Ingress | undefined }): HookAnswers {
  const label = capped(ROUTES_MAX);
  const answerHook: HookAnswers["answer"] = (request, peer) => {
    const url = new URL(request.url);
    return hooks?.owns(url.pathname) ? answer({ request, url, peer: peer() }, { hooks, label, ...parts }) : undefined;
  };
  return {
    answer: answerHook,
    async answerAlone(request, peer) {
      const hooked = answerHook(request, peer);
      if (hooked) return hooked;
      const { status, headers, body } = refusalReply(new Refusal("not_found"), makeRequestId());
      parts.record(request, { status, route: "other" });
      return new Response(body ?? null, { status, headers: { ...headers, connection: "close" } });
    },
    isMeant: (pathname) => hooks?.owns(decodedPath(pathname)) ?? false,
  };
}

async function answer(
  { request, url, peer }: { request: Request; url: URL; peer: string | undefined },
  { hooks, label, record, count, spans }: HookParts & { hooks: Ingress; label: (route: string) => string },
): Promise<Response> {
  const startedMs = performance.now();
  const { method, signal } = request;
  const headers = spans?.headersOf(request) ?? request.headers; // stored work refers to the span of this request
  const reply = await hooks.receive({
    id: makeRequestId(),
    method,
    url,
    headers,
    // a stream is made on demand
    get body() {
      return request.body;
    },
    bytes: () => request.bytes(),
    signal,
    peer,
  });
  const ms = Math.round((performance.now() - startedMs) * 10) / 10;
  const route = label(`hooks/${reply.route}`);
  count(route, reply.notes);
  record(request, { status: reply.status, ms, route, notes: reply.notes });
  if (reply.news) return newsResponse(reply.news, { signal, headers: reply.headers });
  return new Response(reply.body ?? null, { status: reply.status, headers: { ...reply.headers } });
}

/** News of a run as server-sent events: `status` and `text`, finally `end`, after which a client need not reconnect. */
async function newsResponse(
  news: NonNullable<HookReply["news"]>,
  { signal, headers }: { signal: AbortSignal; headers: HookReply["headers"] },
): Promise<Response> {
  const gone = new AbortController();
  signal.addEventListener("abort", () => gone.abort(), { once: true });
  const encoding = sse(() => [FAILED]);
  const response = await streamed(framesOf(news(gone.signal)), encoding, { gone, onEnd: () => {} });
  for (const [name, value] of Object.entries(headers)) response.headers.set(name, value);
  return response;
}

/** The status has been sent when the first news is read: a failure becomes a frame. */
async function* framesOf(news: AsyncGenerator<RunNews>): AsyncGenerator<Frame, void, void> {
  let isEnded = false;
  try {
    for await (const each of news) {
      if (each.kind === "status") isEnded = isOver(each.status);
      yield each.kind === "text"
        ? { event: "text", data: { text: each.text } }
        : { event: "status", data: { run: each.status } };
    }
  } catch {
    return yield FAILED; // the worker logs the reason
  }
  if (isEnded) yield { event: "end", data: {} };
}

const FAILED: Frame = { event: "error", data: { error: "internal error" } };
