/** Paths in errors for clients: relative to the store or the home, never absolute. The log has the whole path. */
import { AppError, messageOf } from "../../base/index.ts";

/** Returns the same error without the folders that the settings name. */
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
