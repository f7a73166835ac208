/** All findings about a configuration: keys, files and channels together. */
import type { ModelSource } from "../agent/models.ts";
import { messageOf } from "../../base/index.ts";
import { channelStandings, type Directory } from "../channels/resolve.ts";
import { loadChannels } from "../channels/load.ts";
import { type ConfigSources, describePath, type Document, readConfig } from "../../base/config/index.ts";
import { audit } from "./audit.ts";
import { auditModels } from "./audit-models.ts";
import { worstFirst, type Finding } from "./report.ts";
import { auditFiles } from "./files.ts";
import { modelSourceOf } from "./model-source.ts";
import { readSnapshot } from "./read.ts";
import type { GatewaySnapshot } from "./snapshot.ts";

export interface FindingParts {
  readonly snapshot: GatewaySnapshot;
  readonly document: Document;
  /** The address that the server listens on. */
  readonly hostname: string;
  /** True if the model API requires keys. */
  readonly hasApiKeys: boolean;
  readonly directory: Directory;
  readonly models: ModelSource;
}

/** Worst first. */
export async function findingsOf({ directory, models, ...parts }: FindingParts): Promise<Finding[]> {
  const { snapshot, document } = parts;
  const channels = channelStandings(directory);
  const asked = await Promise.all([auditFiles(snapshot, document), auditModels(snapshot, models)]);
  return worstFirst([...audit({ ...parts, channels }), ...asked.flat()]);
}

/**
 * The findings of a configuration file, worst first; undefined if there is no file. A broken file is a finding too.
 * Connects only to the server at `models.url`, for the names of its models.
 * @param models of the running server; absent: the models that a start would find
 */
export async function auditConfiguration(sources: ConfigSources, models?: ModelSource): Promise<Finding[] | undefined> {
  try {
    const config = readConfig(sources);
    const read = readSnapshot(sources, config);
    if (!read) return undefined;
    const { snapshot, document } = read;
    const { folder } = snapshot;
    const loaded = await loadChannels(snapshot.channels, { fetch, now: Date.now, folder });
    const unusable = loaded.problems.map(({ path, message }): Finding => ({
      id: "channel-unusable",
      severity: "error",
      key: describePath(path),
      where: document.where(path),
      message,
    }));
    const found = await findingsOf({
      snapshot,
      document,
      hostname: config.host.hostname,
      hasApiKeys: config.apiKeys.length > 0,
      directory: loaded,
      models: models ?? modelSourceOf(config),
    });
    return worstFirst([...unusable, ...found]);
  } catch (error) {
    const lines = messageOf(error).split("\n");
    return lines.map((message) => ({ id: "invalid", severity: "error", key: "", where: "", message }));
  }
}
