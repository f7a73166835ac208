/** `hearth hooks audit` and `sign`: commands that need the configuration file, and no server. */
import { AppError } from "../../base/index.ts";
import type { ConfigSources } from "../../base/config/index.ts";
import {
  auditConfiguration,
  type Finding,
  makeMappings,
  readSnapshot,
  type SignatureConfig,
  signatureSchemes,
  signRequest,
  worstFirst,
} from "../../gateway/setup.ts";
import { clientSettings } from "../client/address.ts";
import { readBodyFile } from "../client/body-file.ts";
import { ReportedFailure } from "../terminal/context.ts";
import { formatTable } from "../terminal/format.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** Time limit for a running server's health. */
const ANSWER_MS = 2000;

export interface LocalContext {
  readonly terminal: Terminal;
  readonly sources: ConfigSources;
}

/** Throws if the configuration has an error. */
export async function auditHooks({ terminal, sources }: LocalContext, { json }: { json?: boolean }): Promise<void> {
  const found = await auditConfiguration(sources);
  if (!found) throw new AppError("not_found", "no configuration file found; name one with --config");
  const findings = worstFirst([...found, ...(await auditRunning(sources, found))]);
  const rows = findings.map(({ severity, id, key, where, message }) => [severity, id, where, key, message]);
  if (json) terminal.write(`${JSON.stringify(findings, null, 2)}\n`);
  else if (rows.length === 0) terminal.write("no problems found\n");
  else terminal.write(formatTable(["SEVERITY", "FINDING", "WHERE", "KEY", "MESSAGE"], rows));
  if (findings.some(({ severity }) => severity === "error")) throw new ReportedFailure();
}

/** Findings of a running server that `found` lacks; empty if no server answers. */
async function auditRunning(sources: ConfigSources, found: readonly Finding[]): Promise<Finding[]> {
  if (found.some(({ id }) => id === "invalid")) return []; // the server's address is in the refused file
  const { server } = clientSettings(sources);
  const { url, tls } = server;
  const gateway = await fetch(`${url}/health`, { signal: AbortSignal.timeout(ANSWER_MS), ...(tls ? { tls } : {}) })
    .then(async (response) => ((await response.json()) as Health).gateway)
    .catch(() => undefined);
  const reported = Array.isArray(gateway?.findings) ? gateway.findings.map(String) : [];
  const running = reported
    .filter((message) => !found.some((each) => each.message === message))
    .map((message): Finding => ({ id: "running", severity: "warn", key: "", where: server.url, message }));
  const { state } = gateway?.mail ?? {};
  if (state !== "down" && state !== "refused") return running;
  const message = "the server cannot listen to the mailbox: see hearth hooks mail status";
  return [...running, { id: "mail-down", severity: "error", key: "hooks.mail", where: server.url, message }];
}

/** The used part of `GET /health`. */
interface Health {
  readonly gateway?: { readonly mail?: { readonly state?: unknown }; readonly findings?: unknown };
}

export interface SignOptions {
  readonly secret?: string;
  readonly id?: string;
  readonly url?: string;
  readonly method: string;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** Writes a sender's headers, one per line, in the format of `curl --header @FILE`. */
export async function signFile(
  { terminal, sources }: LocalContext,
  { scheme, file }: { scheme: string; file: string },
  options: SignOptions,
): Promise<void> {
  const config = signatureOf(scheme, { secret: options.secret ?? sources.env["HEARTH_HOOK_SECRET"], sources });
  const rawBody = await readBodyFile(file);
  const isJson = /^\s*[[{]/.test(new TextDecoder().decode(rawBody.subarray(0, 64)));
  const headers = signRequest(config, {
    rawBody,
    headers: { "content-type": isJson ? "application/json" : "application/x-www-form-urlencoded" },
    url: options.url ?? "",
    method: options.method,
    nowMs: options.now,
    id: options.id ?? crypto.randomUUID(),
  });
  terminal.write(
    Object.entries(headers)
      .map(([name, value]) => `${name}: ${value}\n`)
      .join(""),
  );
}

/** Schemes whose other settings are in a mapping: a secret alone is not enough to sign. */
const DESCRIBED: readonly string[] = ["hmac", "public-key", "token"];

/** @param name a scheme, or a mapping with a scheme and a secret */
function signatureOf(
  name: string,
  { secret, sources }: { secret: string | undefined; sources: ConfigSources },
): SignatureConfig {
  const isScheme = Object.hasOwn(signatureSchemes, name) && !DESCRIBED.includes(name);
  if (isScheme && secret) {
    return { scheme: name, secrets: [{ value: secret, expiresAt: undefined }] } as SignatureConfig; // checked above
  }
  const read = readSnapshot(sources, { apiKeys: [] });
  const mapping = read && makeMappings(read.snapshot).all.find(({ id }) => id === name);
  if (mapping?.config.auth) return mapping.config.auth;
  if (isScheme) throw new AppError("bad_request", "expected a secret: set HEARTH_HOOK_SECRET, or --secret");
  if (mapping) throw new AppError("bad_request", `mapping '${name}' checks the hook token, not a signature`);
  const known = Object.keys(signatureSchemes).join(", ");
  throw new AppError("bad_request", `'${name}' is neither a scheme (${known}) nor a mapping of the configuration`);
}
