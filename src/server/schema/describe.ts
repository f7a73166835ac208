/** The API description of a route: placed beside the route, as its `detail`. */
import type { TSchema } from "@sinclair/typebox";
import type { DocumentDecoration } from "elysia";

type Api = "native" | "OpenAI" | "Anthropic" | "server" | "gateway";

/** The kind of a reply; several if the request chooses. */
type ReplyKind = "json" | "ndjson" | "events" | "text" | "html" | "bytes" | "empty";

export interface RouteNote {
  readonly api: Api;
  readonly summary: string;
  readonly body?: TSchema | "bytes";
  /** True if the body is a form in parts. */
  readonly isForm?: boolean;
  /** `json` by default. */
  readonly reply?: ReplyKind | readonly ReplyKind[];
  /** Schema of a JSON reply, if there is one. */
  readonly answer?: object;
  /** OpenAPI parameters besides the path's. */
  readonly parameters?: DocumentDecoration["parameters"];
  /** Status of success; 200 by default. */
  readonly status?: 200 | 201;
}

const MEDIA_TYPES: Readonly<Record<Exclude<ReplyKind, "empty">, string>> = {
  json: "application/json",
  ndjson: "application/x-ndjson",
  events: "text/event-stream",
  text: "text/plain",
  html: "text/html",
  bytes: "application/octet-stream",
};

const FAILURES = {
  "4XX": "The request cannot be served; `error` says why",
  "5XX": "The server failed, or is busy; `Retry-After` says when to retry, if known",
};

/** An OpenAPI operation. */
export function describe({
  api,
  summary,
  body,
  isForm = false,
  reply = "json",
  answer,
  parameters,
  status = 200,
}: RouteNote): DocumentDecoration {
  const kinds = [reply].flat().filter((kind) => kind !== "empty");
  const content = Object.fromEntries(
    kinds.map((kind) => [MEDIA_TYPES[kind], { schema: (kind === "json" && answer) || schemaOf(kind) }]),
  );
  const error = { "application/json": { schema: ERRORS[api] } };
  return {
    tags: [api],
    summary,
    ...(parameters === undefined ? {} : { parameters }),
    ...(api === "gateway" ? { security: [{ gatewayToken: [] }] } : {}),
    ...(body === undefined ? {} : { requestBody: { required: true, content: contentOf(body, isForm) } }),
    responses: {
      [status]: { description: "Success", ...(kinds.length > 0 ? { content } : {}) },
      ...Object.fromEntries(
        Object.entries(FAILURES).map(([key, description]) => [key, { description, content: error }]),
      ),
    },
  };
}

function contentOf(body: TSchema | "bytes", isForm: boolean): Record<string, { schema?: object }> {
  if (body === "bytes") return { "application/octet-stream": {} };
  return { [isForm ? "multipart/form-data" : "application/json"]: { schema: withoutOurs(body) } };
}

/** NDJSON: one object on each line; events: JSON after `data:`. */
const schemaOf = (kind: ReplyKind): object => ({ type: kind === "json" || kind === "ndjson" ? "object" : "string" });

const object = (properties: object): object => ({ type: "object", properties });
const text = { type: "string" };
const NATIVE_ERROR = object({ error: text });
const ERRORS: Readonly<Record<Api, object>> = {
  native: NATIVE_ERROR,
  server: NATIVE_ERROR,
  gateway: NATIVE_ERROR,
  OpenAI: object({ error: object({ message: text, type: text, param: { type: ["string", "null"] } }) }),
  Anthropic: object({ type: text, error: object({ type: text, message: text }), request_id: text }),
};

/** Keywords that only our error messages and `decode` use. */
const OURS: ReadonlySet<string> = new Set(["orText"]);

/** Removes keywords that are not JSON Schema. */
function withoutOurs(schema: TSchema): object {
  return JSON.parse(JSON.stringify(schema, (key, value) => (OURS.has(key) ? undefined : value)));
}
