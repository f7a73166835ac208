/**
 * Providers' checks of an address before they send to it: they expect an echo. Only mappings configured for it answer,
 * only with values of the check, and never with anything that a browser would render.
 */
import type { MappingConfig, ResponseConfig } from "../config.ts";

export interface HandshakeRequest {
  readonly method: string;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** The parsed body; undefined if absent. */
  readonly payload: unknown;
  /** True if a text is one of the mapping's secrets, compared in constant time. */
  readonly knowsSecret: (text: string) => boolean;
}

/** The answer to a check, instead of the mapping's. */
export interface HandshakeReply {
  readonly status: number;
  readonly contentType: string;
  /** Empty for status 204. */
  readonly body: string;
}

type Kind = NonNullable<MappingConfig["handshake"]>;

const ECHO_MAX = 1024;

const text = (body: string): HandshakeReply => ({ status: 200, contentType: "text/plain; charset=utf-8", body });
const json = (status: number, body: string): HandshakeReply => ({
  status,
  contentType: "application/json; charset=utf-8",
  body,
});

/** Undefined: not a check, or implausibly long. */
type Handshake = (request: HandshakeRequest) => HandshakeReply | undefined;

const HANDSHAKES: Readonly<Record<Kind, Handshake>> = {
  slack({ payload }) {
    const { type, challenge } = fieldsOf(payload);
    return type === "url_verification" ? echo(challenge) : undefined;
  },
  github({ headers }) {
    if (headers["x-github-event"] !== "ping") return undefined;
    return json(200, '{"ok":true,"ping":true}');
  },
  meta({ method, query, knowsSecret }) {
    if (method !== "GET" || query.get("hub.mode") !== "subscribe") return undefined;
    if (knowsSecret(query.get("hub.verify_token") ?? "")) return echo(query.get("hub.challenge"));
    return json(403, '{"ok":false,"error":"forbidden"}');
  },
  /** Checks of an interactions endpoint have type 1; on an endpoint for webhook events, the events have. */
  discord({ payload }) {
    const { type, event } = fieldsOf(payload);
    if (type === 1 && event === undefined) return json(200, '{"type":1}');
    return type === 0 ? json(204, "") : undefined;
  },
  microsoft: ({ query }) => echo(query.get("validationToken")),
};

/** True if a mapping of this kind must accept GET requests. */
export const hearsGet = (kind: Kind | undefined): boolean => kind === "meta";

/** True if a check of this kind comes without the credentials of deliveries. */
export const precedesCredentials = (kind: Kind): boolean => kind === "meta" || kind === "microsoft";

/**
 * The mapping's own answer to accepted requests. Slack's commands and clicks come as forms, fail on any status but 200,
 * and may show the answer to the person. Undefined: the sender accepts any 2xx.
 */
export function acknowledgement(
  { response, handshake }: Pick<MappingConfig, "response" | "handshake">,
  contentType: string | null,
): HandshakeReply | undefined {
  if (response) return ownReply(response);
  return handshake === "slack" && /^application\/x-www-form-urlencoded\b/i.test(contentType ?? "")
    ? text("")
    : undefined;
}

function ownReply({ status, body, contentType }: ResponseConfig): HandshakeReply {
  if (body === undefined || typeof body === "string") {
    return { status, contentType: contentType ?? "text/plain; charset=utf-8", body: body ?? "" };
  }
  return { status, contentType: contentType ?? "application/json; charset=utf-8", body: JSON.stringify(body) };
}

export function answerHandshake(kind: Kind, request: HandshakeRequest): HandshakeReply | undefined {
  return HANDSHAKES[kind](request);
}

function echo(value: unknown): HandshakeReply | undefined {
  return typeof value === "string" && value !== "" && value.length <= ECHO_MAX ? text(value) : undefined;
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}
