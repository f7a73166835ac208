/**
 * Everything below `hooks.path`: handed to the ingress as it is, before the guards of the model API, because webhooks
 * bring credentials of their own, come by any host name, and never from a page. The path can change while we run, so
 * this is no route of Elysia's.
 */
import type { Ingress } from "../../hooks/ingress/ingress.ts";
import type { Recorder } from "../recorder.ts";
import { makeRequestId } from "../request-id.ts";

/** Undefined: the request is no hook's. */
export type HookAnswer = (request: Request, peer: () => string | undefined) => Promise<Response> | undefined;

export function makeHookAnswer({ hooks, record }: { hooks: Ingress | undefined; record: Recorder }): HookAnswer {
  if (!hooks) return () => undefined;
  return (request, peer) => {
    const url = new URL(request.url);
    return hooks.owns(url.pathname) ? answer({ request, url, peer: peer() }, { hooks, record }) : undefined;
  };
}

async function answer(
  { request, url, peer }: { request: Request; url: URL; peer: string | undefined },
  { hooks, record }: { hooks: Ingress; record: Recorder },
): Promise<Response> {
  const startedMs = performance.now();
  const { method, headers, body, signal } = request;
  const reply = await hooks.receive({ id: makeRequestId(), method, url, headers, body, signal, peer });
  const ms = Math.round((performance.now() - startedMs) * 10) / 10;
  record(request, { status: reply.status, ms, route: "hooks", notes: reply.notes });
  return new Response(reply.body ?? null, { status: reply.status, headers: { ...reply.headers } });
}
