/**
 * One request to a platform, and the meaning of its answer for the message. The answer decides whether a repeat is
 * safe: a request that never left may be repeated, one that left and got no answer may not.
 */
import { messageOf, ownValue, parseRetryAfter } from "../../base/index.ts";
import type { Health, SendOutcome } from "./channel.ts";

const TIMEOUT_MS = 30_000;
const ANSWER_BYTES_MAX = 262_144; // answers are short JSON
const REASON_CHARS_MAX = 300;
const RETRY_AFTER_MAX_MS = 24 * 3_600_000;

export interface ApiCall {
  readonly method?: "GET" | "POST";
  /** Appended to the base URL. */
  readonly path: string;
  /** Sent as JSON. */
  readonly json?: unknown;
  /** Sent as a form. */
  readonly form?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

export type Answer =
  | {
      readonly kind: "answered";
      readonly status: number;
      /** Parsed JSON; undefined if it is invalid, too long or cut off. */
      readonly body: unknown;
      readonly retryAfterMs: number | undefined;
    }
  /** The connection failed before the request left. */
  | { readonly kind: "unsent"; readonly reason: string }
  /** The request left, at least in part, and no answer came. */
  | { readonly kind: "broken"; readonly reason: string };

/** Reads a platform's answers. */
export interface Dialect {
  /** The receipt, if the platform accepted the message; called for 2xx answers only. */
  readonly accepted: (body: unknown) => { readonly messageId?: string | undefined } | undefined;
  /** The platform's own error text. */
  readonly reason: (body: unknown) => string | undefined;
  /** The wait time in the body, for platforms that state it there. */
  readonly retryAfterMs?: (body: unknown) => number | undefined;
  /** True for an answer other than 401 that refuses our credentials; not called for 2xx. */
  readonly isRefusal?: (status: number, body: unknown) => boolean;
}

export interface ApiSettings {
  /** The platform's id; begins every reason. */
  readonly label: string;
  readonly fetch: typeof fetch;
  readonly baseUrl: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Removed from every reason. */
  readonly secrets: readonly string[];
}

export interface Api {
  /** Never throws. */
  call(request: ApiCall): Promise<Answer>;
  /** The outcome of a send, from its answer. */
  outcome(answer: Answer, dialect: Dialect): SendOutcome;
  /** The platform's health, from the answer to a harmless request. */
  health(answer: Answer, dialect: Dialect): Health;
  /** A platform's text as a reason: one short line, without our secrets. */
  say(text: string): string;
}

export function makeApi(settings: ApiSettings): Api {
  const say = (text: string): string => {
    const hidden = settings.secrets.reduce((rest, secret) => rest.replaceAll(secret, "***"), text);
    const line = hidden.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ").trim();
    return `${settings.label}: ${line.slice(0, REASON_CHARS_MAX).toWellFormed()}`;
  };
  const refusal = (status: number, words: string | undefined): string =>
    say(`answered ${status}${words ? `: ${words}` : isSuccess(status) ? " with a body that it never sends" : ""}`);
  return {
    call: (request) => call(settings, request),
    say,
    outcome: (answer, dialect) => {
      if (answer.kind === "unsent") return { kind: "retry", reason: say(answer.reason) };
      if (answer.kind === "broken") return { kind: "unknown", reason: say(answer.reason) };
      const { status, body } = answer;
      const receipt = isSuccess(status) ? dialect.accepted(body) : undefined;
      if (receipt) return { kind: "sent", ...(receipt.messageId ? { messageId: receipt.messageId } : {}) };
      const reason = refusal(status, dialect.reason(body));
      // an unreadable answer or a proxy's timeout leaves open whether the message arrived
      if (isSuccess(status) || status === 504) return { kind: "unknown", reason };
      if (status === 401 || dialect.isRefusal?.(status, body)) return { kind: "refused", reason };
      if (!isTemporary(status)) return { kind: "failed", reason };
      const afterMs = dialect.retryAfterMs?.(body) ?? answer.retryAfterMs;
      return { kind: "retry", reason, ...(afterMs === undefined ? {} : { afterMs: boundedWait(afterMs) }) };
    },
    health: (answer, dialect) => {
      if (answer.kind !== "answered") return { ok: false, reason: say(answer.reason) };
      if (isSuccess(answer.status) && dialect.accepted(answer.body)) return { ok: true };
      return { ok: false, reason: refusal(answer.status, dialect.reason(answer.body)) };
    },
  };
}

const isSuccess = (status: number): boolean => status >= 200 && status < 300;
const isTemporary = (status: number): boolean => status >= 500 || status === 408 || status === 425 || status === 429;
const boundedWait = (ms: number): number => Math.min(Math.max(ms, 0), RETRY_AFTER_MAX_MS);

async function call({ fetch, baseUrl, headers }: ApiSettings, request: ApiCall): Promise<Answer> {
  const payload = payloadOf(request);
  // fetch reads the body only once it is connected: before that, the message cannot have arrived
  let hasLeft = false;
  async function* body(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
    hasLeft = true;
    yield bytes;
  }
  try {
    const response = await fetch(joinUrl(baseUrl, request.path), {
      method: request.method ?? "POST",
      headers: {
        accept: "application/json",
        ...(payload ? { "content-type": payload.type, "content-length": String(payload.bytes.length) } : {}),
        ...headers,
        ...request.headers,
      },
      ...(payload ? { body: body(payload.bytes) } : {}),
      redirect: "manual", // send only to the configured server
      keepalive: false, // a pooled connection may be closed by the other side, which would look like a broken request
      signal: AbortSignal.any([request.signal, AbortSignal.timeout(TIMEOUT_MS)]),
    });
    const retryAfterMs = parseRetryAfter(response.headers.get("retry-after"));
    return { kind: "answered", status: response.status, body: await readJson(response), retryAfterMs };
  } catch (error) {
    return { kind: hasLeft ? "broken" : "unsent", reason: describeFailure(error) };
  }
}

function payloadOf({ json, form }: ApiCall): { bytes: Uint8Array; type: string } | undefined {
  const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
  if (json !== undefined) return { bytes: encode(JSON.stringify(json)), type: "application/json; charset=utf-8" };
  if (!form) return undefined;
  return { bytes: encode(String(new URLSearchParams(form))), type: "application/x-www-form-urlencoded" };
}

const joinUrl = (base: string, path: string): string => `${base.replace(/\/+$/, "")}${path}`;

/** Omits addresses: some hold tokens. */
function describeFailure(error: unknown): string {
  const { name, code } = error as { name?: string; code?: unknown };
  if (name === "TimeoutError") return "no answer in time";
  if (name === "AbortError") return "stopped before an answer came";
  return typeof code === "string" ? `the connection failed (${code})` : `the request failed: ${firstWords(error)}`;
}

const firstWords = (error: unknown): string => messageOf(error).replace(/https?:\S+/g, "…");

/** Undefined if the body is not JSON, too long, or ends early; the status is valid all the same. */
async function readJson(response: Response): Promise<unknown> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const chunk of response.body ?? []) {
      bytes += chunk.length;
      if (bytes > ANSWER_BYTES_MAX) return undefined; // leaving the loop cancels the body
      chunks.push(chunk);
    }
    return JSON.parse(new TextDecoder().decode(Buffer.concat(chunks)));
  } catch {
    return undefined;
  }
}

/** A field of an answer, at any depth; undefined if absent. */
export const field = (body: unknown, ...path: (string | number)[]): unknown => ownValue(body, path);

/** A string or number field, as text. */
export function textField(body: unknown, ...path: (string | number)[]): string | undefined {
  const value = field(body, ...path);
  return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
}

/** A field in seconds, in whole milliseconds. */
export function secondsField(body: unknown, ...path: (string | number)[]): number | undefined {
  const value = field(body, ...path);
  return typeof value === "number" && value >= 0 ? Math.ceil(value * 1000) : undefined;
}
