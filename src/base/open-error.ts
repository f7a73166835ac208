/** Errors of file readers: a file that cannot be opened, is not a regular file, or ends too soon. */
import { AppError, messageOf } from "./errors.ts";

export function notRegular(path: string): AppError {
  return new AppError("bad_file", `${path}: expected a regular file, got something else`);
}

/** Converts a failure of node:fs; returns an `AppError` unchanged. @param path or another name of the file */
export function openError(path: string, error: unknown): AppError {
  if (error instanceof AppError) return error;
  const missing = (error as { code?: string }).code === "ENOENT"; // node:fs errors carry a code
  if (missing) return new AppError("not_found", `${path}: no such file`, { cause: error });
  const reason = messageOf(error).replace(/^E[A-Z]+: |, [a-z]+( '.*')?$/gs, ""); // drops the code, call and path
  return new AppError("bad_file", `${path}: cannot be read: ${reason}`, { cause: error });
}

/** Awaits an operation of node:fs on a file; converts its failure by `openError`. */
export async function reading<T>(path: string, work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    throw openError(path, error);
  });
}

export function readingSync<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw openError(path, error);
  }
}

/** The file was shortened after its size was read. */
export function endedEarly(path: string): AppError {
  return new AppError("bad_file", `${path}: the file ended while it was read`);
}
