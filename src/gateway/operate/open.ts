/**
 * Opens the gateway of a configuration file: reads and checks the file at the start, and watches it afterwards. Without
 * a gateway section in the file there is no gateway.
 */
import type { ToolServers } from "../agent/calls/server-tools.ts";
import type { ModelSource } from "../agent/models.ts";
import { type Logger, messageOf, systemClock } from "../../base/index.ts";
import type { Tracer } from "../../base/tracing.ts";
import { pluginProblems } from "../channels/load.ts";
import { type Config, type ConfigSources, readConfig } from "../../base/config/index.ts";
import type { ChatRuntime } from "../../runtime/portable.ts";
import { auditConfiguration, findingsOf } from "./findings.ts";
import { makeGateway, type Gateway } from "./gateway.ts";
import { readSnapshot } from "./read.ts";
import type { Finding } from "./report.ts";
import { configurationError } from "./snapshot.ts";
import { ConfigWatch } from "./watch.ts";

/** Sections that enable the gateway. */
const SECTIONS = ["hooks", "agents", "channels", "session"];

export interface OpenParts {
  readonly sources: ConfigSources;
  readonly config: Pick<Config, "home" | "apiKeys" | "host">;
  readonly runtime: ChatRuntime;
  readonly models: ModelSource;
  readonly log: Logger;
  readonly servers?: ToolServers | undefined;
  readonly tracer?: Tracer | undefined;
}

/** Throws `bad_request` naming file, line and key, or `storage`. */
export async function openGateway(parts: OpenParts): Promise<Gateway | undefined> {
  const { sources, config, log } = parts;
  const first = readSnapshot(sources, config);
  if (!first || !SECTIONS.some((name) => Object.hasOwn(first.document.root, name))) return undefined;
  const { document, snapshot } = first;
  const problems = await pluginProblems(snapshot.channels, snapshot);
  if (problems.length > 0) throw configurationError(problems, snapshot.where);
  const source = new ConfigWatch({
    first,
    read: () => {
      const next = readSnapshot(sources, config);
      if (next) readConfig(sources, next.document); // refuse now a file that the next start would refuse
      return next;
    },
    log,
  });
  const { runtime, models, servers, tracer } = parts;
  const findings = (): ReturnType<typeof auditConfiguration> => auditConfiguration(sources, models);
  const found = { source, home: config.home, runtime, ...models, clock: systemClock, log, fetch, findings };
  const given = { ...found, servers, tracer };
  const gateway = await makeGateway(given);
  const { directory } = gateway.channels;
  const about = { models, directory, hostname: config.host.hostname, hasApiKeys: config.apiKeys.length > 0 };
  const tell = makeTeller(log);
  tell(await findingsOf({ document, snapshot, ...about }));
  let isOpen = true;
  source.onChange(() => {
    findings().then(
      (found) => void (found && isOpen && tell(found)),
      (error: unknown) => log.warn("auditing the configuration failed", { error: messageOf(error) }),
    );
  });
  return {
    ...gateway,
    async stop(graceMs) {
      isOpen = false;
      source.close();
      await gateway.stop(graceMs);
    },
  };
}

/** Logs findings; later calls log only new ones. */
function makeTeller(log: Logger): (findings: readonly Finding[]) => void {
  let logged = new Set<string>();
  return (findings) => {
    const texts = findings.map(({ id, key, message }) => JSON.stringify([id, key, message]));
    for (const [i, { severity, id, key, where, message }] of findings.entries()) {
      if (!logged.has(texts[i]!)) log[severity](`configuration: ${message}`, { finding: id, key, where });
    }
    logged = new Set(texts);
  };
}
