/** Findings about the servers that share a database. */
import type { NodeStatus } from "../database/peers.ts";
import type { Finding } from "./report.ts";

/** While a change of the configuration is rolled out, nodes differ. */
const DIFFERENT_MS = 60_000;

/** Number of nodes with each configuration, by its digest. */
export function configurations(nodes: readonly Pick<NodeStatus, "digest">[]): Map<string, number> {
  return new Map([...Map.groupBy(nodes, ({ digest }) => digest)].map(([digest, same]) => [digest, same.length]));
}

/** A finding if nodes have had different configurations for a while. */
export function differences(nodes: readonly NodeStatus[], now: number): Finding[] {
  const changedAt = Math.max(...nodes.map(({ digestAt }) => digestAt));
  if (configurations(nodes).size < 2 || now - changedAt < DIFFERENT_MS) return [];
  const each = nodes.map(({ name, number, digest }) => `${name}#${number} has ${digest}`).join(", ");
  const message = `servers that share the database have different configurations: ${each}`;
  return [{ id: "configurations-differ", severity: "warn", key: "", where: "", message }];
}
