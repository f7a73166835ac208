/** `hearth nodes`: the servers that share the gateway's database, with their leases. */
import type { Json } from "../client/client.ts";
import type { CliContext } from "../terminal/context.ts";
import { formatTable, formatWhen } from "../terminal/format.ts";

export async function nodes({ client, terminal, nowMs }: CliContext, { json }: { json?: boolean }): Promise<void> {
  const found = await client.get("/hooks-admin/nodes");
  if (json) return terminal.write(`${JSON.stringify(found, null, 2)}\n`);
  const list = found["nodes"] as Json[];
  if (list.length === 0) return terminal.note("no other server shares the gateway's database");
  const when = (ms: number): string => formatWhen(new Date(ms).toISOString(), nowMs());
  const rows = list.map(({ number, name, version, digest, startedAt, seenAt, leads }) => [
    `${name}#${number}`,
    version,
    digest.slice(0, 8),
    when(startedAt),
    when(seenAt),
    leads.join(", "),
  ]);
  terminal.write(formatTable(["NODE", "VERSION", "CONFIG", "STARTED", "SEEN", "LEADS"], rows));
}
