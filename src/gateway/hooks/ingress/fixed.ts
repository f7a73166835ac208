/** `/wake` and `/agent`: the request itself names its action. */
import { READ_MS, readBody } from "./body.ts";
import { readDirect } from "./direct.ts";
import type { Authenticator } from "./authenticator.ts";
import { headerKey } from "./idempotency.ts";
import { readPayload } from "./payload.ts";
import type { EndpointReply, IngressDeps } from "./ports.ts";
import type { RateLimits } from "./rate-limits.ts";
import { acceptActions, type RequestContext } from "./request-context.ts";
import type { Waits } from "./waits.ts";

/** Throws a `Refusal`. */
export async function answerFixed(
  deps: IngressDeps & { readonly authenticator: Authenticator; readonly limits: RateLimits; readonly waits: Waits },
  endpoint: "wake" | "agent",
  context: RequestContext,
): Promise<EndpointReply> {
  const { settings, request, client, note, addHeaders } = context;
  const { hooks } = settings;
  const pass = deps.authenticator.admit(hooks, client);
  note({ auth: pass.auth.id });
  addHeaders(deps.limits.take([["hooks", hooks.rateLimit]]));
  const timeoutMs = deps.readMs?.proved ?? READ_MS;
  const rawBody = await readBody(request, { limitBytes: hooks.maxBodyBytes, timeoutMs });
  note({ bytes: rawBody.length });
  // the token may have been revoked meanwhile
  if (deps.settings().hooks !== hooks) deps.authenticator.admit(deps.settings().hooks, client);
  const contentType = request.headers.get("content-type");
  const payload = await readPayload(rawBody, { contentType, isMapped: false, isStrict: hooks.strict });
  const direct = await readDirect(endpoint, { payload, settings: hooks, checks: deps.checks });
  const header = headerKey(request.headers);
  const reply = await acceptActions(deps, context, {
    pass,
    rawBody,
    actions: [direct.action],
    warnings: [...header.warnings, ...direct.warnings],
    idempotencyKey: header.key ?? direct.idempotencyKey,
  });
  return { ...reply, headers: { ...reply.headers, ...pass.headers } };
}
