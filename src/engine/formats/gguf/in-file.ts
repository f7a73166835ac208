/** Adds the file's name to errors. */
import { AppError } from "../../../base/index.ts";

/** The result of `read`. An error that does not name the file gets the name as a prefix. */
export function inFile<T>(path: string | undefined, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof AppError) || error.message.startsWith(`${path}: `)) throw error;
    throw new AppError(error.code, `${path}: ${error.message}`, { cause: error });
  }
}
