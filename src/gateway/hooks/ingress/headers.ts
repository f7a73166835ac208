/** Selects the headers that the delivery log keeps. */
import { keptTrace } from "../trace.ts";

/** Headers about content and program; never credentials. */
const KEPT = [
  "content-type",
  "user-agent",
  "webhook-id",
  "svix-id",
  "x-github-event",
  "x-github-delivery",
  "x-gitlab-event",
  "x-gitlab-event-uuid",
  "x-gitea-event",
  "x-gitea-delivery",
  "x-shopify-topic",
  "x-shopify-webhook-id",
  "linear-event",
  "linear-delivery",
  "sentry-hook-resource",
];
const KEPT_LENGTH_MAX = 256;

export function keptHeaders(headers: Headers): Record<string, string> {
  const found = KEPT.flatMap((name) => {
    const value = headers.get(name);
    return value === null ? [] : [[name, value.slice(0, KEPT_LENGTH_MAX)] as const];
  });
  const trace = keptTrace({ traceparent: headers.get("traceparent"), tracestate: headers.get("tracestate") });
  return { ...Object.fromEntries(found), ...trace };
}
