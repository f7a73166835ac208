/** `hearth list`: the models of the store. */
import type { CliContext } from "../terminal/context.ts";
import { formatBytes, formatTable, formatWhen } from "../terminal/format.ts";

/** Throws if no name begins with `prefix`. */
export async function list(
  { client, terminal, nowMs }: CliContext,
  prefix = "",
  { json }: { json?: boolean } = {},
): Promise<void> {
  const models = await client.models("/api/tags");
  const shown = models.filter(({ name }) => name.toLowerCase().startsWith(prefix.toLowerCase()));
  if (shown.length === 0 && prefix !== "") {
    throw new Error(`no model begins with '${prefix}': 'hearth list' shows the models that are there`);
  }
  if (json) return terminal.write(`${JSON.stringify({ models: shown }, null, 2)}\n`);
  const others = shown.filter(({ read_only: readOnly }) => readOnly).length;
  if (others > 0) terminal.note(otherStores(others));
  const rows = shown.map(({ name, digest, size, modified_at, remote_host }) => [
    name,
    digest.slice(0, 12),
    remote_host ? "-" : formatBytes(size),
    formatWhen(modified_at, nowMs()),
  ]);
  terminal.write(formatTable(["NAME", "ID", "SIZE", "MODIFIED"], rows));
}

const otherStores = (count: number): string =>
  `${count} of these ${count === 1 ? "is" : "are"} read-only, in Ollama's store; HEARTH_OTHER_STORES=false hides them`;
