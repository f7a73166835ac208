/** Providers' address checks that come without the credentials of a delivery. */
import { answerHandshake, precedesCredentials, type HandshakeRequest } from "./handshake.ts";
import type { Mapping } from "../mapping/index.ts";
import type { Authenticator } from "./authenticator.ts";
import type { EndpointReply } from "./ports.ts";
import { textReply } from "./reply.ts";
import { checkToken, isOneOf } from "./tokens.ts";
import type { Visit } from "./visit.ts";

/** Undefined: the request is not such a check. A check with a wrong secret is a failed attempt. */
export function answerEarly(
  authenticator: Authenticator,
  candidates: readonly Mapping[],
  visit: Visit,
): EndpointReply | undefined {
  for (const mapping of candidates) {
    const { handshake } = mapping.config;
    if (!handshake || !precedesCredentials(handshake)) continue;
    const reply = answerHandshake(handshake, handshakeRequest(visit, { mapping, payload: undefined }));
    if (reply) visit.note({ mapping: mapping.id });
    if (reply?.status === 403) throw authenticator.refusal(visit.visitor, "the handshake names a wrong secret");
    if (reply) return textReply(reply, { handshake });
  }
  return undefined;
}

/** @param about.payload undefined before the body is read */
export function handshakeRequest(
  { settings: { hooks }, request, visitor }: Visit,
  { mapping, payload }: { mapping: Mapping; payload: unknown },
): HandshakeRequest {
  const { path, nowMs } = visitor;
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
