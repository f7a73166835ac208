/** The password of a mail account, from the configuration or from a separate file. */
import { stat } from "node:fs/promises";
import { AppError } from "../../../base/index.ts";
import type { MailAccount } from "./config.ts";

/** Application passwords have 16 characters. */
const PASSWORD_BYTES_MAX = 4096;

/** Throws `bad_request` naming the file. */
export async function readPassword({ password }: Pick<MailAccount, "password">): Promise<string> {
  if ("value" in password) return password.value;
  const path = password.file;
  const bad = (what: string): AppError => new AppError("bad_request", `hooks.mail.passwordFile: '${path}': ${what}`);
  const { size } = await stat(path).catch((error: NodeJS.ErrnoException) => {
    throw bad(`cannot be read: ${error.code}`);
  });
  if (size > PASSWORD_BYTES_MAX) throw bad(`expected at most ${PASSWORD_BYTES_MAX} bytes, got ${size}`);
  const text = await Bun.file(path)
    .text()
    .catch((error: NodeJS.ErrnoException) => {
      throw bad(`cannot be read: ${error.code}`);
    });
  const line = text.replace(/\r?\n$/, "");
  if (line === "" || /[\r\n\0]/.test(line)) throw bad("expected one line, the password");
  return line;
}
