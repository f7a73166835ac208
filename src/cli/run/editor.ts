/** Ctrl+G: edits a message in the editor of `VISUAL` or `EDITOR`. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Returns the edited text. Throws if the editor cannot be started, or fails. */
export function editText(text: string, editor: string | undefined): string {
  if (!editor) throw new Error("no editor is set: set VISUAL or EDITOR, such as EDITOR=nano");
  const folder = mkdtempSync(join(tmpdir(), "hearth-message-"));
  const path = join(folder, "message.md");
  try {
    writeFileSync(path, text === "" ? "" : `${text}\n`, { mode: 0o600 });
    // the variable may hold flags
    const command =
      process.platform === "win32"
        ? ["cmd", "/d", "/s", "/c", `"${editor} "${path}""`] // removes the outer quotes, and reads no others
        : ["sh", "-c", `${editor} "$1"`, "sh", path];
    const { exitCode } = Bun.spawnSync(command, {
      stdio: ["inherit", "inherit", "inherit"],
      windowsVerbatimArguments: true,
    });
    if (exitCode !== 0) throw new Error(`'${editor}' ended with ${exitCode ?? "a signal"}: the message is unchanged`);
    return readFileSync(path, "utf8")
      .replaceAll("\r\n", "\n")
      .replace(/[^\P{Cc}\n\t]/gu, "")
      .replace(/\n+$/, "");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
