/** The body of a webhook for a command: a file, or standard input. */
import { readFile } from "node:fs/promises";
import { AppError } from "../../base/index.ts";
import { readStandardInput } from "./standard-input.ts";

const PROBLEMS: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file",
  EISDIR: "it is a folder",
  EACCES: "its permissions do not allow it",
};

/**
 * Throws `bad_request` naming the file.
 * @param file `-`: standard input
 */
export async function readBodyFile(file: string): Promise<Uint8Array> {
  if (file === "-") return readStandardInput();
  return readFile(file).catch((error: NodeJS.ErrnoException) => {
    const why = PROBLEMS[error.code ?? ""] ?? error.message;
    const expected = "expected a file that holds the body of a request, or - for standard input";
    throw new AppError("bad_request", `cannot read '${file}': ${why}; ${expected}`, { cause: error });
  });
}
