/** `hearth list`: the models of the store. */
import type { CliContext } from "../context.ts";
import { formatBytes, formatTable, formatWhen } from "../format.ts";

export async function list({ client, terminal, nowMs }: CliContext, prefix = ""): Promise<void> {
  const { models } = await client.get("/api/tags");
  const rows = (models as Record<string, any>[])
    .filter(({ name }) => name.toLowerCase().startsWith(prefix.toLowerCase()))
    .map(({ name, digest, size, modified_at, remote_host }) => [
      name,
      digest.slice(0, 12),
      remote_host ? "-" : formatBytes(size),
      formatWhen(modified_at, nowMs()),
    ]);
  terminal.write(formatTable(["NAME", "ID", "SIZE", "MODIFIED"], rows));
}
