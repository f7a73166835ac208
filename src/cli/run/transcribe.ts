/** `hearth run MODEL FILE …` with a model for speech: prints the text of each recording. */
import { basename } from "node:path";
import type { CliContext } from "../terminal/context.ts";

/** Throws if no file is named or one is missing, and `ApiError`. */
export async function transcribe(
  { client, terminal }: CliContext,
  paths: readonly string[],
  { model, keepAlive }: { readonly model: string; readonly keepAlive: string | undefined },
): Promise<void> {
  if (paths.length === 0) throw new Error("models for speech require a recording; usage: hearth run MODEL FILE");
  for (const path of paths) {
    const file = Bun.file(path);
    if (!(await file.exists())) throw new Error(`${path}: expected a recording, got no such file`);
    const form = new FormData();
    form.append("model", model);
    if (keepAlive !== undefined) form.append("keep_alive", keepAlive);
    form.append("file", file, basename(path));
    const { text } = await client.postForm("/v1/audio/transcriptions", form);
    terminal.write(`${text}\n`);
  }
}
