/**
 * Everything below `hooks.path`: handed to the ingress as it is, before the guards of the model API, because webhooks
 * bring credentials of their own, come by any host name, and never from a page. The path can change while we run, so
 * this is no route of Elysia's.
 */
import type { Ingress } from "../../hooks/ingress/ingress.ts";
import type { HookReply } from "../../hooks/ingress/ports.ts";
import { isOver, type RunNews } from "../../hooks/worker/watch.ts";
import type { CountHook } from "../gateway-metrics.ts";
import { capped } from "../label-values.ts";
import type { Recorder } from "../recorder.ts";
import { makeRequestId } from "../request-id.ts";
import { sse, type Frame } from "../sse.ts";
import { streamed } from "../stream.ts";

/** Undefined: the request is no hook's. */
type HookAnswer = (request: Request, peer: () => string | undefined) => Promise<Response> | undefined;

/** Endpoints, and mappings of all configurations since the start. */
const ROUTES_MAX = 2000;

interface HookParts {
  readonly record: Recorder;
  readonly count: CountHook;
}

export function makeHookAnswer({ hooks, ...parts }: HookParts & { hooks: Ingress | undefined }): HookAnswer {
  if (!hooks) return () => undefined;
  const label = capped(ROUTES_MAX);
  return (request, peer) => {
    const url = new URL(request.url);
    return hooks.owns(url.pathname) ? answer({ request, url, peer: peer() }, { hooks, label, ...parts }) : undefined;
  };
}

async function answer(
  { request, url, peer }: { request: Request; url: URL; peer: string | undefined },
  { hooks, label, record, count }: HookParts & { hooks: Ingress; label: (route: string) => string },
): Promise<Response> {
  const startedMs = performance.now();
  const { method, headers, body, signal } = request;
  const reply = await hooks.receive({ id: makeRequestId(), method, url, headers, body, signal, peer });
  const ms = Math.round((performance.now() - startedMs) * 10) / 10;
  const route = label(`hooks/${reply.route}`);
  count(route, reply.notes);
  record(request, { status: reply.status, ms, route, notes: reply.notes });
  if (reply.news) return newsResponse(reply.news, { signal, headers: reply.headers });
  return new Response(reply.body ?? null, { status: reply.status, headers: { ...reply.headers } });
}

/** News of a run as server-sent events: `status` and `text`, at last `end`, upon which a client need not come again. */
async function newsResponse(
  news: NonNullable<HookReply["news"]>,
  { signal, headers }: { signal: AbortSignal; headers: HookReply["headers"] },
): Promise<Response> {
  const gone = new AbortController();
  signal.addEventListener("abort", () => gone.abort(), { once: true });
  const encoding = sse(() => [{ event: "error", data: { error: "internal error" } }]);
  const response = await streamed(framesOf(news(gone.signal)), encoding, { gone, onEnd: () => {} });
  for (const [name, value] of Object.entries(headers)) response.headers.set(name, value);
  return response;
}

async function* framesOf(news: AsyncGenerator<RunNews>): AsyncGenerator<Frame, void, void> {
  let isEnded = false;
  for await (const each of news) {
    if (each.kind === "status") isEnded = isOver(each.status);
    yield each.kind === "text"
      ? { event: "text", data: { text: each.text } }
      : { event: "status", data: { run: each.status } };
  }
  if (isEnded) yield { event: "end", data: {} };
}
