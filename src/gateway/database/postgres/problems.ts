/** What a PostgreSQL server's errors mean for the gateway. Classes of SQLSTATE: PostgreSQL's manual, appendix A. */
import { AppError, messageOf } from "../../../base/index.ts";

/** Another try of the same transaction may succeed: a serialization failure, a deadlock, a lock that was not free. */
const REPEATABLE = /^(40001|40P01|55P03)$/;
/**
 * The server or the connection, not the statement: connections, resources, interventions, system errors, internals, and
 * tables that are not there or whose rights were taken away while statements are what they always were.
 */
const OF_THE_SERVER = /^(08|53|57|58|25006|3F000|42501|42P01|XX)/;
/** How soon another try makes sense. */
export const RETRY_MS = 5000;

const READ_ONLY = "25006";
/** lock_not_available */
const LOCKED = "55P03";

/** It took statements, and says nothing. What becomes of them nobody knows. */
export class SilentServer extends AppError {
  constructor(cause: unknown) {
    super("storage", "the database does not answer", { cause, retryAfterMs: RETRY_MS });
  }
}

/** SQLSTATE; undefined where the error is not the server's. */
function stateOf(error: unknown): string | undefined {
  const { errno } = error as { errno?: unknown };
  return typeof errno === "string" ? errno : undefined;
}

/** Whether the error is the driver's own: the server was not there, or went away. */
const isConnection = (error: unknown): boolean => {
  const { code } = error as { code?: unknown };
  return typeof code === "string" && code.startsWith("ERR_POSTGRES_") && stateOf(error) === undefined;
};

/** Whether a session was not allowed to write. */
export const isReadOnly = (error: unknown): boolean => stateOf(error) === READ_ONLY;

export const isRepeatable = (error: unknown): boolean => REPEATABLE.test(stateOf(error) ?? "");

/** Whether the transaction is lost whatever its script says: not a statement that was refused. */
export const isOfServer = (error: unknown): boolean => {
  const state = stateOf(error);
  return state === undefined ? isConnection(error) : OF_THE_SERVER.test(state);
};

/** One line: what is wrong with the database. */
export function problemOf(error: unknown): AppError {
  if (error instanceof AppError) return error;
  return new AppError("storage", `the database ${reasonOf(error)}`, { cause: error, retryAfterMs: RETRY_MS });
}

/** As `problemOf`, of a server that nobody has reached yet: it says where it was looked for. */
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
  if (state === LOCKED) return `is too slow: somebody holds a lock, such as an import or a migration: ${message}`;
  if (state.startsWith("53")) return `has no room: ${message}`;
  if (state.startsWith("57")) return `is going away: ${message}`;
  if (/^(28|3D)/.test(state)) return `lets nobody in: ${message}`;
  return `failed: ${message} (${state})`;
}
