/** The operations of the ingress: parameters, bodies, answers, and every refusal that each can end in. */
import { Type, type TSchema } from "@sinclair/typebox";
import { acceptedSchema } from "../../queue/deliveries/answer.ts";
import { outcomeSchema, runSchema } from "../answers.ts";
import type { ProblemName } from "../problems.ts";
import { agentFields, bodyOf, idempotencyKey, wakeFields } from "../requests.ts";

export interface Parameter {
  readonly name: string;
  readonly in: "header" | "path" | "query";
  readonly description?: string;
  readonly schema?: TSchema;
}

/** Descriptions of headers by name. */
export type Headers = Readonly<Record<string, string>>;

export interface Answer {
  readonly description: string;
  readonly headers?: Headers;
  /** Schema of a JSON answer. */
  readonly schema?: TSchema;
  /** Media type of an answer that is not JSON, or not always. */
  readonly text?: string;
}

export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  readonly parameters: readonly Parameter[];
  /** Absent: no body. */
  readonly body?: { readonly schema: TSchema; readonly types: readonly string[] };
  /** Answers of accepted requests, by status. */
  readonly answers: Readonly<Record<number, Answer>>;
  readonly refusals: readonly ProblemName[];
  /** True if it needs no token. */
  readonly isOpen?: boolean;
}

const EVERYWHERE = ["query_token_refused", "method_not_allowed", "shutting_down", "internal"] as const;
const DOOR = ["unauthorized", "token_not_for_path", "too_many_failures"] as const;
const READING = [
  "body_timeout",
  "payload_too_large",
  "unsupported_media_type",
  "unsupported_encoding",
  "invalid_encoding",
  "invalid_utf8",
  "invalid_json",
  "invalid_form",
  "too_deep",
] as const;
const STORING = ["rate_limited", "idempotency_conflict", "queue_full", "unavailable"] as const;
const POSTED = [...EVERYWHERE, ...DOOR, ...READING, ...STORING];
const FIXED = [...POSTED, "invalid_body", "unknown_field", "invalid_field"] as const;
const CHECKED = [
  "agent_not_allowed",
  "channel_not_allowed",
  "session_key_not_allowed",
  "model_not_allowed",
  "model_unknown",
] as const;

const KEY: Parameter = {
  name: "Idempotency-Key",
  in: "header",
  description: "Equal requests with an equal key are one: the later ones get the first answer",
  schema: idempotencyKey.schema,
};
const TRACE: readonly Parameter[] = [
  {
    name: "traceparent",
    in: "header",
    description: "W3C Trace Context: kept with the delivery, logged, and passed on to a callback",
  },
  { name: "tracestate", in: "header", description: "Passed on with `traceparent`; at most 512 characters" },
];
const PREFER: Parameter = {
  name: "Prefer",
  in: "header",
  description: "`wait=N`: the answer waits up to N seconds for the outcome (RFC 7240)",
};

const DEPRECATED = { Deprecation: "Where the token came in the address (RFC 9745)" };
export const RATE_HEADERS = {
  "RateLimit-Policy": "Requests and seconds of the limit that applies, as `20;w=60`",
  "RateLimit-Limit": "Requests of that limit",
  "RateLimit-Remaining": "Requests that are left",
  "RateLimit-Reset": "Seconds until the limit is fully available again",
};
const ASKED = { ...DEPRECATED, ...RATE_HEADERS };
const REPLAYED = {
  ...ASKED,
  "Idempotency-Replayed": "`true` if an equal request was accepted before",
};
const WAITED = { ...REPLAYED, "Preference-Applied": "`wait=N` if requested" };
const LOCATED = { ...WAITED, Location: "URL of the state of the run, or of the first of several" };
const ACCEPTED: Answer = { description: "Stored; its runs begin soon", headers: LOCATED, schema: acceptedSchema };
const OUTCOME: Answer = {
  description: "Outcome of the runs, if the request waited",
  headers: WAITED,
  schema: outcomeSchema,
};

const FORMS = ["application/json", "application/x-www-form-urlencoded", "multipart/form-data"];

export const WAKE: Operation = {
  operationId: "hooksWake",
  summary: "Queue an event for the main session",
  parameters: [KEY, ...TRACE],
  body: { schema: bodyOf(wakeFields), types: FORMS },
  answers: { 200: { description: "Stored", headers: REPLAYED, schema: acceptedSchema } },
  refusals: [...FIXED, "text_required"],
};

export const AGENT: Operation = {
  operationId: "hooksAgent",
  summary: "Run an agent turn; its summary goes to the main session, its answer to a chat",
  parameters: [KEY, PREFER, ...TRACE],
  body: { schema: bodyOf(agentFields), types: FORMS },
  answers: { 200: OUTCOME, 202: ACCEPTED },
  refusals: [...FIXED, ...CHECKED, "message_required", "model_required", "callback_not_allowed"],
};

export const NAME: Parameter = {
  name: "name",
  in: "path",
  description: "The path of a mapping in `hooks.mappings`, or of a preset; it may hold slashes",
};

export const MAPPED: Operation = {
  operationId: "hooksMapped",
  summary: "Whatever a mapping of the configuration makes of a body",
  description:
    "Answers as `wake` or `agent` do, by the mapping's action. Needs the hook token, or the signature that the " +
    "mapping asks for. A mapping's handshake answers its provider's check of the address with text. What a " +
    "mapping's conditions leave out is 204 for its sender.",
  parameters: [KEY, PREFER, ...TRACE],
  body: { schema: Type.Unknown(), types: [...FORMS, "application/x-ndjson", "text/plain"] },
  answers: {
    200: { ...OUTCOME, text: "text/plain" },
    202: ACCEPTED,
    204: { description: "Accepted without action" },
  },
  refusals: [
    ...POSTED,
    ...CHECKED,
    "not_found",
    "text_too_long",
    "mapping_rejected",
    "mapping_failed",
    "batch_too_large",
    "too_busy",
  ],
};

export const CHECK: Operation = {
  operationId: "hooksHandshake",
  summary: "A provider's check of the address, for mappings with such a handshake",
  parameters: ["hub.mode", "hub.verify_token", "hub.challenge"].map((name) => ({ name, in: "query" })),
  answers: { 200: { description: "The challenge", text: "text/plain" } },
  refusals: [...EVERYWHERE, "unauthorized", "too_many_failures"],
  isOpen: true,
};

export const RUN_ID: Parameter = { name: "id", in: "path" };

export const RUN: Operation = {
  operationId: "hooksRun",
  summary: "State of a run",
  parameters: [],
  answers: { 200: { description: "The run", headers: ASKED, schema: runSchema } },
  refusals: [...EVERYWHERE, ...DOOR, "rate_limited", "not_found", "unavailable"],
};

export const EVENTS: Operation = {
  operationId: "hooksRunEvents",
  summary: "State of a run, as server-sent events until it ends",
  description: "`status` with `{run}`, `text` with `{text}` as the model writes, at last `end`.",
  parameters: [],
  answers: { 200: { description: "Events", headers: ASKED, text: "text/event-stream" } },
  refusals: [...EVERYWHERE, ...DOOR, "rate_limited", "not_found", "unavailable", "too_busy"],
};
