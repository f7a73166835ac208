/** Says which file an error is about. */
import { AppError } from "../../../base/index.ts";

/** What `read` returns. Where it throws an error that does not name the file, that is put before its message. */
export function inFile<T>(path: string | undefined, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof AppError) || error.message.startsWith(`${path}: `)) throw error;
    throw new AppError(error.code, `${path}: ${error.message}`, { cause: error });
  }
}
