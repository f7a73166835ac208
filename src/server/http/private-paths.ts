/**
 * Errors as clients are told them: a file of ours by its place in the store or the home, not on the machine. The log
 * has the whole path.
 */
import { AppError, messageOf } from "../../base/errors.ts";

/** Returns an error that says the same of the same code, without the folders that the settings name. */
export type HidePaths = (error: unknown) => unknown;

export function makeHidePaths({ models, home }: { models: readonly string[]; home: string }): HidePaths {
  return (error) => {
    const message = messageOf(error);
    const shown = models
      .reduce((text, folder) => text.replaceAll(`${folder}/`, "models/"), message)
      .replaceAll(`${home}/`, "home/");
    if (shown === message) return error;
    if (!(error instanceof AppError)) return new Error(shown, { cause: error });
    const { code, retryAfterMs } = error;
    return new AppError(code, shown, { cause: error, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) });
  };
}
