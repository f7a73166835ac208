/**
 * The gateway of a configuration file: read and checked at the start, watched from then on. Where no part of a gateway
 * is configured there is none, and nothing of it is made.
 */
import { dirname } from "node:path";
import { systemClock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";
import { pluginProblems } from "../channels/load.ts";
import { readConfigFile, type Config, type ConfigSources } from "../config.ts";
import type { Document } from "../config/document.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { audit } from "./audit.ts";
import { auditFiles } from "./files.ts";
import { makeGateway, type Gateway } from "./gateway.ts";
import { configurationError, makeSnapshot, type GatewaySnapshot } from "./snapshot.ts";
import { ConfigWatch } from "./watch.ts";

/** Sections that ask for a gateway. */
const SECTIONS = ["hooks", "agents", "channels", "session"];

export interface OpenParts {
  readonly sources: ConfigSources;
  readonly config: Pick<Config, "home" | "apiKeys" | "host">;
  readonly runtime: Runtime;
  readonly modelNames: () => Promise<readonly string[]>;
  readonly log: Logger;
}

/** Throws `bad_request` naming file, line and key, or `storage`. */
export async function openGateway(parts: OpenParts): Promise<Gateway | undefined> {
  const { sources, config, log } = parts;
  const first = read(sources, config);
  if (!first || !SECTIONS.some((name) => Object.hasOwn(first.document.root, name))) return undefined;
  const { snapshot } = first;
  const problems = await pluginProblems(snapshot.channels, snapshot);
  if (problems.length > 0) throw configurationError(problems, snapshot.where);
  const source = new ConfigWatch({
    first,
    read: () => read(sources, config) ?? first, // without its file, what it said last
    log,
  });
  const { runtime, modelNames } = parts;
  const gateway = await makeGateway({ source, home: config.home, runtime, modelNames, clock: systemClock, log, fetch });
  await report(gateway, { document: first.document, hostname: config.host.hostname, log });
  return {
    ...gateway,
    async stop(graceMs) {
      source.close();
      await gateway.stop(graceMs);
    },
  };
}

function read(
  sources: ConfigSources,
  { apiKeys }: Pick<Config, "apiKeys">,
): { document: Document; snapshot: GatewaySnapshot } | undefined {
  const document = readConfigFile(sources);
  const [file] = document?.files ?? [];
  if (!document || file === undefined) return undefined;
  return { document, snapshot: makeSnapshot(document, { folder: dirname(file), apiKeys }) };
}

/** Says once what an operator should know. */
async function report(
  gateway: Gateway,
  { document, hostname, log }: { document: Document; hostname: string; log: Logger },
): Promise<void> {
  const { snapshot, channels } = gateway;
  const { kinds } = channels.directory;
  const known = kinds.flatMap(({ id, aliases }) => [id, ...aliases].map((name) => [name, describe(id)] as const));
  function describe(id: string): { isConfigured: boolean; hasDefault: boolean } {
    const channel = channels.channels.get(id);
    return { isConfigured: channel !== undefined, hasDefault: channel?.defaultTo !== undefined };
  }
  const findings = [
    ...audit({ snapshot: snapshot(), document, hostname, channels: new Map(known) }),
    ...(await auditFiles(snapshot(), document)),
  ];
  for (const { severity, id, key, where, message } of findings) {
    log[severity](`configuration: ${message}`, { finding: id, key, where });
  }
}
