/**
 * The meaning of a PostgreSQL server's errors for the gateway. Classes of SQLSTATE: PostgreSQL's manual, appendix A.
 */
import { AppError, messageOf } from "../../../base/index.ts";

/** Retrying the transaction may succeed: serialization failure, deadlock, lock not available. */
const REPEATABLE = /^(40001|40P01|55P03)$/;
/**
 * Errors of the server or the connection, not of the statement: connections, resources, interventions, system errors,
 * internals, and missing tables or rights, because our statements are fixed.
 */
const OF_THE_SERVER = /^(08|53|57|58|25006|3F000|42501|42P01|XX)/;
/** Suggested delay before a retry. */
export const RETRY_MS = 5000;

const READ_ONLY = "25006";
/** lock_not_available */
const LOCKED = "55P03";

/** The server has received statements and does not answer: their outcome is unknown. */
export class SilentServer extends AppError {
  constructor(cause: unknown) {
    super("storage", "the database does not answer", { cause, retryAfterMs: RETRY_MS });
  }
}

/** SQLSTATE; undefined if the error is not the server's. */
function stateOf(error: unknown): string | undefined {
  const { errno } = error as { errno?: unknown };
  return typeof errno === "string" ? errno : undefined;
}

/** True if the driver raised the error: the server was unreachable, or the connection broke. */
const isConnection = (error: unknown): boolean => {
  const { code } = error as { code?: unknown };
  return typeof code === "string" && code.startsWith("ERR_POSTGRES_") && stateOf(error) === undefined;
};

/** True if a session was not allowed to write. */
export const isReadOnly = (error: unknown): boolean => stateOf(error) === READ_ONLY;

export const isRepeatable = (error: unknown): boolean => REPEATABLE.test(stateOf(error) ?? "");

/** True if the whole transaction is lost, as opposed to a refused statement. */
export const isOfServer = (error: unknown): boolean => {
  const state = stateOf(error);
  return state === undefined ? isConnection(error) : OF_THE_SERVER.test(state);
};

/** A one-line error to display. */
export function problemOf(error: unknown): AppError {
  if (error instanceof AppError) return error;
  return new AppError("storage", `the database ${reasonOf(error)}`, { cause: error, retryAfterMs: RETRY_MS });
}

/** Like `problemOf`, for a server that was never reached: names the address. */
export function startProblem(error: unknown, place: string): AppError {
  const problem = problemOf(error);
  const { cause } = problem;
  if (cause === undefined || stateOf(cause) !== undefined || problem.message.includes(place)) return problem;
  return new AppError("storage", `${problem.message} (${place})`, { cause, retryAfterMs: RETRY_MS });
}

function reasonOf(error: unknown): string {
  const state = stateOf(error);
  const message = messageOf(error).split("\n")[0] ?? "";
  if (state === undefined) return isConnection(error) ? `cannot be reached: ${message}` : `failed: ${message}`;
  if (state === READ_ONLY) return "is read-only";
  if (state === "57014") return `is too slow: ${message}`;
  if (state === LOCKED)
    return `is too slow: another session holds a lock, such as an import or a migration: ${message}`;
  if (state.startsWith("53")) return `has no room: ${message}`;
  if (state.startsWith("57")) return `is going away: ${message}`;
  if (/^(28|3D)/.test(state)) return `refuses the login: ${message}`;
  return `failed: ${message} (${state})`;
}
