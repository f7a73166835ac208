/** Audits the files that a configuration names: who may write them, who may read their secrets. */
import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { AppError } from "../../base/index.ts";
import { describePath, type Document, type Path } from "../../base/config/index.ts";
import { makeMappings } from "../hooks/mapping/index.ts";
import { TransformPool } from "../hooks/mapping/transforms/pool.ts";
import { pathOf, type Finding } from "./report.ts";
import { auditMailFiles, OTHERS } from "./audit-mail.ts";
import type { GatewaySnapshot } from "./snapshot.ts";

const OTHERS_READ = 0o004;
const OTHERS_WRITE = 0o002;

export async function auditFiles(snapshot: GatewaySnapshot, document: Document): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for (const file of process.platform === "win32" ? [] : document.files) {
    const mode = (await stat(file)).mode;
    const at = { key: "", where: file };
    if (mode & OTHERS_WRITE) {
      findings.push({
        ...at,
        id: "file-writable",
        severity: "error",
        message: "everyone on this machine may change it",
      });
    } else if (mode & OTHERS_READ && holdsSecrets(document)) {
      const message = "everyone on this machine may read its tokens: chmod 600";
      findings.push({ ...at, id: "file-readable", severity: "warn", message });
    }
  }
  const more = [auditTransforms, auditModules, auditMailFiles, auditSecretFiles].map((check) =>
    check(snapshot, document),
  );
  return [...findings, ...(await Promise.all(more)).flat()];
}

/** Settings with secret values, in any section. */
const SECRET_KEYS = /^(token|botToken|accessToken|password|appPassword|secret|secrets|key|apiKeys)$/;

/** True if the file holds a secret itself, not the name of an environment variable. */
function holdsSecrets({ root, hasVariable }: Document): boolean {
  const isHeld = (value: unknown, path: Path, isSecret: boolean): boolean => {
    if (typeof value === "string") return isSecret && value !== "" && !hasVariable(path);
    if (Array.isArray(value)) return value.some((item, i) => isHeld(item, [...path, i], isSecret));
    if (typeof value !== "object" || value === null) return false;
    const isPublic = (value as { scheme?: unknown }).scheme === "discord"; // a public key is not a secret
    return Object.entries(value).some(([name, item]) => {
      const inside = isSecret ? name === "value" : SECRET_KEYS.test(name) && !isPublic;
      return isHeld(item, [...path, name], inside || isAddressWithPassword(name, item));
    });
  };
  return isHeld(root, [], false);
}

/** Settings of channels that name a file with a secret: `tokenFile` and the like. */
const SECRET_FILE = /(token|password|secret|key)File$/i;

/** Audits files of channels' secrets that others can read or change; a missing one makes its channel unusable. */
async function auditSecretFiles({ channels, folder }: GatewaySnapshot, document: Document): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const [section, settings] of process.platform === "win32" ? [] : Object.entries(channels)) {
    for (const [key, value] of Object.entries(settings ?? {})) {
      if (!SECRET_FILE.test(key) || typeof value !== "string") continue;
      const path = ["channels", section, key];
      const found = await stat(resolve(folder, value)).catch(() => undefined);
      if (!found || (found.mode & OTHERS) === 0) continue;
      const message = `others on this machine may read or change '${resolve(folder, value)}': chmod 600`;
      findings.push({
        id: "secret-readable",
        severity: "warn",
        key: describePath(path),
        where: document.where(path),
        message,
      });
    }
  }
  return findings;
}

/** Matches `database.url`, and similar settings. */
const isAddressWithPassword = (name: string, value: unknown): boolean =>
  name === "url" && typeof value === "string" && /^\w+:\/\/[^/?#]*:[^/?#]+@|[?&]password=/.test(value);

async function auditTransforms({ hooks, folder }: GatewaySnapshot, document: Document): Promise<Finding[]> {
  if (hooks.transformsDir === undefined) return [];
  const path = resolve(folder, hooks.transformsDir);
  const at = { key: "hooks.transformsDir", where: document.where(["hooks", "transformsDir"]) };
  const found = await stat(path).catch(() => undefined);
  if (!found?.isDirectory()) {
    return [{ ...at, id: "transforms-missing", severity: "error", message: `'${path}' is not a folder` }];
  }
  if (process.platform === "win32" || (found.mode & OTHERS_WRITE) === 0) return [];
  const message = `everyone on this machine may put code into '${path}'`;
  return [{ ...at, id: "transforms-writable", severity: "error", message }];
}

/** Loads each transform in a separate process, without calling it. */
async function auditModules({ hooks, folder }: GatewaySnapshot, document: Document): Promise<Finding[]> {
  const { all, transformsDir, transformTimeoutMs } = makeMappings({ hooks, folder });
  await using pool = new TransformPool();
  const findings: Finding[] = [];
  for (const [i, mapping] of all.entries()) {
    const { id, config } = mapping;
    if (!config.transform) continue;
    try {
      await pool.check({ ...config.transform, lane: id, folder: transformsDir, timeoutMs: transformTimeoutMs });
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      const path = [...pathOf(mapping, i), "transform"];
      const message = `every request of mapping '${id}' fails: ${error.message}`;
      const at = { key: describePath(path), where: document.where(path) };
      findings.push({ ...at, id: "transform-broken", severity: "error", message });
    }
  }
  return findings;
}
