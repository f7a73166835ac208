/** `hearth list`: the models of the store. */
import type { CliContext } from "../context.ts";
import { formatBytes, formatTable, formatWhen } from "../format.ts";

const OTHERS = "read only, in the store of another server (Ollama's): #; HEARTH_OTHER_STORES=false leaves them out";

export async function list({ client, terminal, nowMs }: CliContext, prefix = ""): Promise<void> {
  const { models } = await client.get("/api/tags");
  const shown = (models as Record<string, any>[]).filter(({ name }) =>
    name.toLowerCase().startsWith(prefix.toLowerCase()),
  );
  const others = shown.filter(({ read_only: readOnly }) => readOnly).length;
  if (others > 0) terminal.note(OTHERS.replace("#", String(others)));
  const rows = shown.map(({ name, digest, size, modified_at, remote_host }) => [
    name,
    digest.slice(0, 12),
    remote_host ? "-" : formatBytes(size),
    formatWhen(modified_at, nowMs()),
  ]);
  terminal.write(formatTable(["NAME", "ID", "SIZE", "MODIFIED"], rows));
}
