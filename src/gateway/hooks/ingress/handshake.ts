/**
 * How providers check an address before they send to it: they want something of theirs back. Only mappings that say so
 * answer, and only with what such a check contains: never with anything that a browser would take for a page.
 */
import type { MappingConfig, ResponseConfig } from "../config.ts";

export interface HandshakeRequest {
  readonly method: string;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** The parsed body; undefined where there is none. */
  readonly payload: unknown;
  /** Whether a text is one of the mapping's secrets, compared in constant time. */
  readonly knowsSecret: (text: string) => boolean;
}

/** What to answer instead of what a mapping would be answered. */
export interface HandshakeReply {
  readonly status: number;
  readonly contentType: string;
  /** Empty where the status is 204. */
  readonly body: string;
}

type Kind = NonNullable<MappingConfig["handshake"]>;

/** Longest text that is given back. */
const ECHO_MAX = 1024;

const text = (body: string): HandshakeReply => ({ status: 200, contentType: "text/plain; charset=utf-8", body });
const json = (status: number, body: string): HandshakeReply => ({
  status,
  contentType: "application/json; charset=utf-8",
  body,
});

/** Undefined: this request is no check, or one too long to be true. */
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
  /** Of an interactions endpoint, whose checks are of type 1, and of one for webhook events, whose events are. */
  discord({ payload }) {
    const { type, event } = fieldsOf(payload);
    if (type === 1 && event === undefined) return json(200, '{"type":1}');
    return type === 0 ? json(204, "") : undefined;
  },
  microsoft: ({ query }) => echo(query.get("validationToken")),
};

/** Whether a mapping of this kind must hear GET requests. */
export const hearsGet = (kind: Kind | undefined): boolean => kind === "meta";

/** Whether a check of this kind comes without the credentials that deliveries have. */
export const precedesCredentials = (kind: Kind): boolean => kind === "meta" || kind === "microsoft";

/**
 * What the sender of a request hears that was taken: what the mapping says. Slack's commands and clicks come as forms,
 * are taken for failed by any other status than 200, and may show the one who gave them what the answer says.
 * Undefined: the sender takes every 2xx.
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
