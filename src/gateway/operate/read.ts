/** The gateway's part of the configuration, read from its file. */
import { dirname } from "node:path";
import { type Config, type ConfigSources, type Document, readConfigFile } from "../../base/config/index.ts";
import { mcpConfigOf } from "../../runtime/mcp/index.ts";
import { makeSnapshot, type GatewaySnapshot } from "./snapshot.ts";

export interface ReadSnapshot {
  readonly document: Document;
  readonly snapshot: GatewaySnapshot;
}

/** Undefined: there is no configuration file. Throws `bad_request` naming file, line and key. */
export function readSnapshot(sources: ConfigSources, { apiKeys }: Pick<Config, "apiKeys">): ReadSnapshot | undefined {
  const document = readConfigFile(sources);
  const [file] = document?.files ?? [];
  if (!document || file === undefined) return undefined;
  mcpConfigOf(document); // a start would refuse the file
  return { document, snapshot: makeSnapshot(document, { folder: dirname(file), apiKeys }) };
}
