/** Which headers of a request go further than the door. */
import { credentialHeaders } from "../signatures/index.ts";
import type { NamedMapping } from "./ports.ts";

/** They prove who somebody is: no template, transform, log or table ever holds one. */
const CREDENTIALS = ["authorization", "proxy-authorization", "x-gateway-token", "x-api-key", "cookie"];

/** What the delivery log keeps: what was sent and by which program, not by whom. */
const KEPT = [
  "content-type",
  "user-agent",
  "traceparent",
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

/** By lower-case name, without credentials: neither ours nor those of any mapping that the path can reach. */
export function openHeaders(headers: Headers, mappings: readonly NamedMapping[]): Record<string, string> {
  const signed = mappings.flatMap(({ config }) => (config.auth ? credentialHeaders(config.auth) : []));
  const hidden = new Set([...CREDENTIALS, ...signed]);
  return Object.fromEntries([...headers].filter(([name]) => !hidden.has(name)));
}

export function keptHeaders(headers: Headers): Record<string, string> {
  const found = KEPT.flatMap((name) => {
    const value = headers.get(name);
    return value === null ? [] : [[name, value.slice(0, KEPT_LENGTH_MAX)] as const];
  });
  return Object.fromEntries(found);
}

/** Without the token. */
export function openQuery(query: URLSearchParams): URLSearchParams {
  const open = new URLSearchParams(query);
  open.delete("token");
  return open;
}
