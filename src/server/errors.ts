/**
 * Failures as HTTP: the one table from code to status, and the body that native routes answer with.
 */
import { AppError, messageOf, type Code } from "../base/errors.ts";

const STATUS = {
  bad_request: 400,
  bad_option: 500, // surfaces when the model is scheduled, in the server that clients know
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  bad_file: 500,
  storage: 500,
  too_large: 413,
  busy: 503,
  cancelled: 499,
  unsupported: 400,
  runner: 500,
  upstream: 502,
} as const satisfies Record<Code, number>;

/** The status of anything thrown: what is not an `AppError` is a bug of ours. */
export function statusOf(error: unknown): number {
  return error instanceof AppError ? STATUS[error.code] : 500;
}

export function errorBody(error: unknown): { error: string } {
  return { error: messageOf(error) };
}
