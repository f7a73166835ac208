/** `hearth run MODEL FILE …` with a model for speech: prints the text of each recording, or of standard input. */
import { basename } from "node:path";
import { readStandardInput } from "../client/standard-input.ts";
import type { CliContext } from "../terminal/context.ts";

interface Recording {
  readonly name: string;
  /** A file is read while it is sent. */
  readonly data: Blob;
}

interface SpeechSettings {
  readonly model: string;
  readonly keepAlive: string | undefined;
}

/** Throws if there is no recording or a file is missing, and `ApiError`. */
export async function transcribe(
  context: CliContext,
  paths: readonly string[],
  settings: SpeechSettings,
): Promise<void> {
  if (paths.length === 0) return transcribeOne(context, settings, await readRecording(context));
  for (const path of paths) {
    const file = Bun.file(path);
    if (!(await file.exists())) throw new Error(`${path}: expected a recording, got no such file`);
    await transcribeOne(context, settings, { name: basename(path), data: file });
  }
}

async function readRecording({ terminal }: CliContext): Promise<Recording> {
  const bytes = terminal.input.isTTY ? new Uint8Array() : await readStandardInput();
  if (bytes.length > 0) return { name: "standard input", data: new Blob([new Uint8Array(bytes)]) };
  throw new Error(
    "models for speech require a recording; usage: hearth run MODEL FILE, or a recording on standard input",
  );
}

async function transcribeOne(
  { client, terminal }: CliContext,
  { model, keepAlive }: SpeechSettings,
  { name, data }: Recording,
): Promise<void> {
  const form = new FormData();
  form.append("model", model);
  if (keepAlive !== undefined) form.append("keep_alive", keepAlive);
  form.append("file", data, name);
  const { text } = await client.postForm("/v1/audio/transcriptions", form);
  terminal.write(`${text}\n`);
}
