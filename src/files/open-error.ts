/** What the readers of files say where a file cannot be opened, is none, or ends too soon. */
import { AppError, messageOf } from "../base/errors.ts";

export function notRegular(path: string): AppError {
  return new AppError("bad_file", `${path}: expected a regular file, got something else`);
}

/** A failure of node:fs in our words; an `AppError` is left as it is. */
export function openError(path: string, error: unknown): AppError {
  if (error instanceof AppError) return error;
  const missing = (error as { code?: string }).code === "ENOENT"; // node:fs errors carry a code
  if (missing) return new AppError("not_found", `${path}: no such file`, { cause: error });
  return new AppError("bad_file", `${path}: cannot be read: ${messageOf(error)}`, { cause: error });
}

/** Someone shortened the file after its size was taken. */
export function endedEarly(path: string): AppError {
  return new AppError("bad_file", `${path}: the file ended while it was read`);
}
