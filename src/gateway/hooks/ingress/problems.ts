/**
 * All reasons to refuse a request: the code for programs, the status, and a fixed text for users. No text quotes the
 * request, because senders copy answers into logs and onto screens.
 */
import { AppError, type Code } from "../../../base/index.ts";

interface Problem {
  readonly status: number;
  readonly code: Code;
  readonly text: string;
}

const problem = (status: number, code: Code, text: string): Problem => ({ status, code, text });

const PROBLEMS = {
  unauthorized: problem(
    401,
    "unauthorized",
    "unauthorized: expected the hook token (hooks.token) as a bearer token, or a valid signature",
  ),
  token_not_for_path: problem(403, "forbidden", "this token is not for this path"),
  too_many_failures: problem(429, "busy", "too many failed attempts"),
  rate_limited: problem(429, "busy", "too many requests: a limit of the configuration is reached"),
  query_token_refused: problem(400, "bad_request", "tokens in the address are refused: send a bearer token"),
  not_found: problem(404, "not_found", "not found"),
  method_not_allowed: problem(405, "bad_request", "method not allowed"),
  body_timeout: problem(408, "timeout", "request body timeout"),
  client_gone: problem(499, "cancelled", "the client went away"),
  idempotency_conflict: problem(409, "conflict", "this idempotency key was used with another body"),
  payload_too_large: problem(413, "too_large", "payload too large"),
  text_too_long: problem(413, "too_large", "a text of the body is too long for the conditions of this path"),
  batch_too_large: problem(
    413,
    "too_large",
    "more items than the queue ever holds for this mapping: send fewer at once",
  ),
  unsupported_media_type: problem(415, "bad_request", "unsupported content type: expected JSON"),
  unsupported_encoding: problem(415, "bad_request", "unsupported content encoding: expected gzip, deflate, br or none"),
  invalid_encoding: problem(400, "bad_request", "the body is not what its content encoding says"),
  invalid_utf8: problem(400, "bad_request", "the body is not UTF-8"),
  invalid_json: problem(400, "bad_request", "invalid JSON"),
  invalid_form: problem(400, "bad_request", "invalid multipart/form-data"),
  too_deep: problem(400, "bad_request", "the body nests too deep"),
  invalid_body: problem(400, "bad_request", "expected a JSON object"),
  text_required: problem(400, "bad_request", "text required"),
  message_required: problem(400, "bad_request", "message required"),
  model_required: problem(400, "bad_request", "model required"),
  model_not_allowed: problem(400, "bad_request", "model not allowed"),
  model_unknown: problem(400, "bad_request", "no such model"),
  agent_not_allowed: problem(400, "bad_request", "no such agent, or not for hooks"),
  channel_not_allowed: problem(400, "bad_request", "no such channel"),
  session_key_not_allowed: problem(400, "bad_request", "sessionKey not allowed"),
  callback_not_allowed: problem(400, "bad_request", "callbackUrl not allowed"),
  invalid_field: problem(400, "bad_request", "invalid field"),
  unknown_field: problem(400, "bad_request", "unknown field"),
  mapping_rejected: problem(400, "bad_request", "the mapping made no valid action of this request"),
  mapping_failed: problem(500, "upstream", "hook mapping failed"),
  queue_full: problem(503, "busy", "the queue is full"),
  too_busy: problem(503, "busy", "too many requests at once"),
  unavailable: problem(503, "storage", "the request cannot be stored now"),
  shutting_down: problem(503, "busy", "shutting down"),
  internal: problem(500, "upstream", "internal error"),
} as const satisfies Record<string, Problem>;

export type ProblemName = keyof typeof PROBLEMS;
export const PROBLEM_NAMES = Object.keys(PROBLEMS) as ProblemName[]; // keys of the literal above
export const statusOfProblem = (name: ProblemName): number => PROBLEMS[name].status;

/** The error of a field; its name is ours, or looks like an identifier. */
export interface FieldProblem {
  readonly field: string;
  readonly reason: string;
}

export interface RefusalOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly details?: readonly FieldProblem[];
  /** For the log only. */
  readonly reason?: string;
  readonly cause?: unknown;
}

/** The error of a refused request. */
export class Refusal extends AppError {
  readonly problem: ProblemName;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly details: readonly FieldProblem[];
  readonly reason: string | undefined;

  constructor(name: ProblemName, { headers = {}, details = [], reason, cause }: RefusalOptions = {}) {
    const { status, code, text } = PROBLEMS[name];
    super(code, text, cause === undefined ? {} : { cause });
    this.problem = name;
    this.status = status;
    this.headers = headers;
    this.details = details;
    this.reason = reason;
  }
}
