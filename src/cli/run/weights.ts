/**
 * `hearth run ./model.gguf`: creates a model from a local file or folder, under a name derived from its content, so
 * that the same files always give the same model.
 */
import { basename } from "node:path";
import type { CliContext } from "../terminal/context.ts";
import { follow, watched } from "../commands/transfer.ts";
import type { ModelArgument } from "../terminal/model-argument.ts";
import { isMissing } from "../client/missing-model.ts";
import { digestOf, filesAt, send, UPLOADED } from "../terminal/upload.ts";

/** The registry's limit for a part of a name. */
const NAME_LENGTH_MAX = 80;
const DIGITS_SHOWN = 8;

/** The name of the model, created if it is missing. Throws if the files are not a model. */
export async function modelOfWeights(
  context: CliContext,
  { path, isFolder }: Extract<ModelArgument, { kind: "path" }>,
): Promise<string> {
  const { client } = context;
  const entries = await filesAt(path, isFolder);
  await client.get("/api/version"); // fails early: digests of large files take minutes
  const made = await watched(context, UPLOADED, async (progress, signal) => {
    const upload = { client, progress, signal };
    const files: Record<string, string> = {};
    const digests: string[] = [];
    for (const entry of entries) digests.push(await digestOf(entry, upload));
    const name = nameFor(path, digests);
    if (await exists(context, name)) return { name, files };
    progress.show({ status: `making the model '${name}' of ${path}; 'hearth rm ${name}' deletes it` });
    for (const [at, entry] of entries.entries()) {
      const digest = digests[at]!; // one for each
      await send(entry, digest, upload);
      files[entry.name] = digest;
    }
    return { name, files };
  });
  const { name, files } = made;
  if (Object.keys(files).length > 0) {
    await follow(context, { path: "/api/create", kept: UPLOADED }, { model: name, files });
  }
  return name;
}

async function exists({ client }: CliContext, model: string): Promise<boolean> {
  try {
    await client.post("/api/show", { model });
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

/** `qwen3-4b-q4_k_m:file-3f2a9c81`: the file's name, and the beginning of the digest of all digests. */
function nameFor(path: string, digests: readonly string[]): string {
  const stem = basename(path)
    .replace(/(-\d{5}-of-\d{5})?\.(gguf|safetensors|bin)$/i, "")
    .toLowerCase()
    .replace(/[^a-z0-9_.-]+/g, "-")
    .replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, "")
    .slice(0, NAME_LENGTH_MAX);
  const digest = new Bun.CryptoHasher("sha256").update(digests.join("\n")).digest("hex");
  return `${stem || "model"}:file-${digest.slice(0, DIGITS_SHOWN)}`;
}
