/** `hearth ps`: the models in memory. */
import type { CliContext } from "../terminal/context.ts";
import { formatBytes, formatTable, formatWhen } from "../terminal/format.ts";

export async function ps(
  { client, terminal, nowMs }: CliContext,
  prefix = "",
  { json }: { json?: boolean } = {},
): Promise<void> {
  const models = await client.models("/api/ps");
  const shown = models.filter(({ name }) => name.toLowerCase().startsWith(prefix.toLowerCase()));
  if (json) return terminal.write(`${JSON.stringify({ models: shown }, null, 2)}\n`);
  if (shown.length === 0 && prefix !== "") terminal.note(`no model in memory begins with '${prefix}'`);
  const rows = shown.map(({ name, digest, size, size_vram, context_length, expires_at }) => [
    name,
    digest.slice(0, 12),
    formatBytes(size),
    processor(size, size_vram),
    String(context_length ?? ""),
    until(expires_at, nowMs()),
  ]);
  terminal.write(formatTable(["NAME", "ID", "SIZE", "PROCESSOR", "CONTEXT", "UNTIL"], rows));
  for (const { name, placement, size, streamed } of shown) {
    if (placement) terminal.note(`${name}: ${placed(placement)}`);
    if (streamed) terminal.note(`${name}: ${readFromDisk(size, streamed)}`);
  }
}

interface Streamed {
  readonly memory: number;
  readonly hits: number;
  readonly misses: number;
}

/** Explains why a model that does not fit in memory is slow. */
function readFromDisk(size: number, { memory, hits, misses }: Streamed): string {
  const share = Math.round((100 * hits) / (hits + misses));
  const used = hits + misses === 0 ? "" : `; so far ${share}% of experts were in memory`;
  return `does not fit in memory: ${formatBytes(memory)} of ${formatBytes(size)} stay, the others are read from the disk${used}`;
}

/** Lists the devices of a model that is on several. */
const placed = (placement: readonly Place[]): string =>
  placement
    .map(({ device, layers, experts = 0 }) => {
      const of = experts > 0 ? `the experts of ${experts} layers` : `${layers} layer${layers === 1 ? "" : "s"}`;
      return `${of} on ${device}`;
    })
    .join(", ");

interface Place {
  readonly device: string;
  readonly layers: number;
  readonly experts?: number;
}

/** The shares of the model on CPU and GPU. */
function processor(size: number, vram: number): string {
  if (vram <= 0) return "100% CPU";
  if (vram >= size) return "100% GPU";
  const cpu = Math.round(((size - vram) / size) * 100);
  return `${cpu}%/${100 - cpu}% CPU/GPU`;
}

function until(expiresAt: string, nowMs: number): string {
  return Date.parse(expiresAt) <= nowMs ? "Stopping..." : formatWhen(expiresAt, nowMs);
}
