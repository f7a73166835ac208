/** Providers' address checks that come without the credentials of a delivery. */
import { answerHandshake, precedesCredentials, type HandshakeRequest } from "./handshake.ts";
import type { Mapping } from "../mapping/index.ts";
import type { Authenticator } from "./authenticator.ts";
import type { EndpointReply } from "./ports.ts";
import { textReply } from "./reply.ts";
import { isOneOf } from "./signatures/scheme.ts";
import { checkToken } from "./tokens.ts";
import type { RequestContext } from "./request-context.ts";

/** Undefined: the request is not such a check. A check with a wrong secret is a failed attempt. */
export function answerEarly(
  authenticator: Authenticator,
  candidates: readonly Mapping[],
  context: RequestContext,
): EndpointReply | undefined {
  for (const mapping of candidates) {
    const { handshake } = mapping.config;
    if (!handshake || !precedesCredentials(handshake)) continue;
    const reply = answerHandshake(handshake, handshakeRequest(context, { mapping, payload: undefined }));
    if (reply) context.note({ mapping: mapping.id });
    if (reply?.status === 403) throw authenticator.refusal(context.client, "the handshake names a wrong secret");
    if (reply) return textReply(reply, { handshake });
  }
  return undefined;
}

/** @param about.payload undefined before the body is read */
export function handshakeRequest(
  { settings: { hooks }, request, client }: RequestContext,
  { mapping, payload }: { mapping: Mapping; payload: unknown },
): HandshakeRequest {
  const { path, nowMs } = client;
  const { auth } = mapping.config;
  const current = auth?.secrets.filter(({ expiresAt }) => !expiresAt || Date.parse(expiresAt) > nowMs);
  return {
    method: request.method,
    headers: Object.fromEntries(request.headers),
    query: request.url.searchParams,
    payload,
    knowsSecret: (text) =>
      current
        ? isOneOf(
            text,
            current.map(({ value }) => value),
          )
        : checkToken(hooks, { value: text, path, nowMs }).ok,
  };
}
