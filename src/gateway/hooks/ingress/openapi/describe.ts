/**
 * The ingress in the API description (OpenAPI 3.1): requests and answers of its endpoints, from the schemas that read
 * and type them, and from the table of refusals.
 */
import type { HooksConfig } from "../../config.ts";
import { AGENT, CHECK, EVENTS, MAPPED, NAME, RUN, RUN_ID, WAKE, type Operation } from "./operations.ts";
import { describeAnswer, describeBody, describeParameter, describeRefusals, type Json } from "./pieces.ts";

export interface IngressDescription {
  /** `hooks.path`. */
  readonly path: string;
  /** Path items, by path. */
  readonly paths: Json;
  readonly securitySchemes: Json;
}

type Described = Pick<HooksConfig, "path" | "allowQueryToken">;

/** @param hearsGet true if a mapping answers address checks that come by GET */
export function describeIngress(hooks: Described, { hearsGet }: { hearsGet: boolean }): IngressDescription {
  const { path } = hooks;
  const security = [{ hookToken: [] }, { hookHeader: [] }, ...(hooks.allowQueryToken ? [{ hookQuery: [] }] : [])];
  const operation = (about: Operation): Json => describeOperation(about, security);
  return {
    path,
    paths: {
      [`${path}/wake`]: { post: operation(WAKE) },
      [`${path}/agent`]: { post: operation(AGENT) },
      [`${path}/{name}`]: {
        parameters: [describeParameter(NAME)],
        post: operation(MAPPED),
        ...(hearsGet ? { get: operation(CHECK) } : {}),
      },
      [`${path}/runs/{id}`]: { parameters: [describeParameter(RUN_ID)], get: operation(RUN) },
      [`${path}/runs/{id}/events`]: { parameters: [describeParameter(RUN_ID)], get: operation(EVENTS) },
    },
    securitySchemes: {
      hookToken: { type: "http", scheme: "bearer", description: "`hooks.token`, or one of `hooks.tokens`" },
      hookHeader: { type: "apiKey", in: "header", name: "x-gateway-token", description: "The same token" },
      ...(hooks.allowQueryToken ? { hookQuery: QUERY_TOKEN } : {}),
    },
  };
}

const QUERY_TOKEN = {
  type: "apiKey",
  in: "query",
  name: "token",
  description: "Deprecated: addresses end up in logs. Answered with a `Deprecation` header",
};

function describeOperation(
  { parameters, body, answers, refusals, isOpen, ...about }: Operation,
  security: readonly Json[],
): Json {
  const accepted = Object.entries(answers).map(([status, answer]) => [status, describeAnswer(answer)]);
  return {
    tags: ["hooks"],
    ...about,
    parameters: parameters.map(describeParameter),
    ...(body ? { requestBody: describeBody(body) } : {}),
    responses: { ...Object.fromEntries(accepted), ...describeRefusals(refusals) },
    security: isOpen ? [] : security,
  };
}
