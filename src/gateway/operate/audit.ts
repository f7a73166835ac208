/**
 * Audits a valid configuration: settings that are dangerous, that contradict each other, or that never take effect.
 * Reads only the configuration; `files.ts` checks the disk.
 */
import { THINKING_LEVELS } from "../agent/config.ts";
import { parseThinking } from "../agent/thinking.ts";
import { describePath, type Path } from "../../base/config/index.ts";
import { PRESETS } from "../hooks/config.ts";
import { isCredentialHeader } from "../hooks/credentials.ts";
import { makeMappings, type Mapping, RESERVED } from "../hooks/mapping/index.ts";
import { asRequested, trimSlashes } from "../hooks/mapping/request.ts";
import { presets } from "../hooks/mapping/presets/index.ts";
import { credentialHeaders } from "../hooks/ingress/signatures/index.ts";
import { auditDelivery, auditFallback, auditHeartbeatTarget, auditLast } from "./audit-delivery.ts";
import { auditExposure } from "./audit-exposure.ts";
import { auditMail } from "./audit-mail.ts";
import { auditRefused, isModelRefused } from "./audit-refused.ts";
import { auditSecrets, auditSignature } from "./audit-signature.ts";
import { auditTemplates } from "./audit-templates.ts";
import { pathOf, type AtMapping, type AuditParts, type Finding, type Report, type Severity } from "./report.ts";
import type { GatewaySnapshot } from "./snapshot.ts";

const TOKEN_LENGTH_MIN = 24;

export function audit(parts: AuditParts): readonly Finding[] {
  const { snapshot, document } = parts;
  const findings: Finding[] = [];
  const report: Report = (severity, id, { path, message, where = document?.where(path) ?? "" }) =>
    void findings.push({ severity, id, key: describePath(path), where, message });
  auditRepeats(parts, report); // a repeated section may be the one that turns the hooks off
  auditSpelling(parts, report);
  if (!snapshot.hooks.enabled) return findings;
  auditTokens(parts, report);
  auditExposure(parts, report);
  auditSecrets(snapshot.hooks, report);
  const { all } = makeMappings(snapshot);
  for (const [i, mapping] of all.entries()) {
    auditMapping(mapping, { path: pathOf(mapping, i), parts, report });
    auditTemplates(mapping, { path: pathOf(mapping, i), parts, report });
    auditRefused(mapping, snapshot, (id, key, message) => {
      report("error", id, { path: [...pathOf(mapping, i), key], message });
    });
    auditShadow(i, { all, report });
  }
  auditFallback(snapshot.hooks.fallbackChannels, { path: ["hooks"], parts, report });
  auditPlans(all, report);
  auditUnused(snapshot.hooks, report);
  auditLast(parts, report);
  auditHeartbeat(snapshot, report);
  auditHeartbeatTarget(parts, report);
  auditMail(snapshot, document, report);
  return findings;
}

function auditTokens({ snapshot, document }: AuditParts, report: Report): void {
  const { hooks } = snapshot;
  const tokens: [Path, string][] = [
    ...(hooks.token ? [[["hooks", "token"], hooks.token] as [Path, string]] : []),
    ...hooks.tokens.map(({ token }, i): [Path, string] => [["hooks", "tokens", i, "token"], token]),
  ];
  for (const [path, token] of tokens) {
    if (token.length < TOKEN_LENGTH_MIN) {
      const message = `shorter than ${TOKEN_LENGTH_MIN} characters: it can be guessed`;
      report("warn", "token-short", { path, message });
    }
    if (document && !document.hasVariable(path)) {
      const message = 'written into the file: put it into the environment and name it here, as in "${HOOKS_TOKEN}"';
      report("info", "token-literal", { path, message });
    }
  }
  if (hooks.allowQueryToken) {
    const message = "tokens in addresses end up in logs; set it to false once no sender needs them";
    report("info", "query-token", { path: ["hooks", "allowQueryToken"], message });
  }
}

/** The last of duplicate keys counts, which is never intended. */
function auditRepeats({ document }: AuditParts, report: Report): void {
  for (const { key, where } of document?.repeated ?? []) {
    report("warn", "repeated-key", {
      path: [key],
      where,
      message: "the same key is there before: only this one counts",
    });
  }
}

/** `${name}` in lower case is literal text, which is easy to guess as a token. */
function auditSpelling({ document }: AuditParts, report: Report): void {
  const look = (value: unknown, path: Path): void => {
    if (typeof value === "object" && value !== null) {
      for (const [key, inner] of Object.entries(value))
        look(inner, [...path, Array.isArray(value) ? Number(key) : key]);
    } else if (typeof value === "string" && /^\$\{[^{}]*\}$/.test(value) && !document?.hasVariable(path)) {
      const message = `'${value}' names no environment variable, so it is text: expected capital letters, digits and '_'`;
      report("warn", "variable-spelling", { path, message });
    }
  };
  look(document?.root, []);
}

function auditMapping({ config: mapping, preset }: Mapping, { path, parts, report }: AtMapping): void {
  const { mail, presetSettings } = parts.snapshot.hooks;
  const isOfMailbox = (key: string): boolean =>
    preset === "mail" && Object.hasOwn(mail ?? {}, key) && !Object.hasOwn(presetSettings.mail ?? {}, key);
  const say = (severity: Severity, id: string, key: string, message: string): void =>
    report(severity, id, { path: [...(isOfMailbox(key) ? ["hooks", "mail"] : path), key], message });
  if (mapping.allowUnsafeExternalContent) {
    say("warn", "unsafe-content", "allowUnsafeExternalContent", "content reaches the model without the boundary");
  }
  if (mapping.tools.length > 0 && !mapping.allowUnsafeExternalContent) {
    say("info", "tools", "tools", `content from outside can use ${mapping.tools.join(", ")}`);
  }
  if (mapping.auth) auditSignature({ ...mapping, auth: mapping.auth }, { path, report });
  const hidden = mapping.auth ? credentialHeaders(mapping.auth) : [];
  for (const key of ["messageTemplate", "textTemplate", "sessionKey", "name", "to"] as const) {
    const header = headersIn(mapping[key]).find((name) => hidden.includes(name) || isCredentialHeader(name));
    if (header) say("warn", "credential-template", key, `'headers.${header}' is always empty: it is a credential`);
  }
  if (mapping.action === "agent" && mapping.deliver) auditDelivery(mapping, { path, parts, report });
  const { thinking } = mapping;
  if (thinking && !thinking.includes("{{") && parseThinking(thinking) === undefined) {
    say(
      "warn",
      "thinking-unknown",
      "thinking",
      `no such level, so it is ignored; known: ${THINKING_LEVELS.join(", ")}`,
    );
  }
}

/** Lower-case names of headers in a template. */
const headersIn = (template = ""): string[] =>
  [...template.matchAll(/headers(?:\.|\[\s*["'])([\w-]+)/gi)].map((match) => (match[1] ?? "").toLowerCase());

/** Broken mappings: they keep their requests and fail them. */
function auditPlans(all: readonly Mapping[], report: Report): void {
  for (const [i, mapping] of all.entries()) {
    if (mapping.plan.ok) continue;
    const message = `every request of this mapping fails: ${mapping.plan.problem}`;
    report("error", "mapping-disabled", { path: pathOf(mapping, i), message });
  }
  for (const { preset, config } of all) {
    if (preset === undefined || presets[preset].scheme === undefined || config.auth) continue;
    const message = `not set: ${config.name} signs its requests, and can send the hook token only in the URL`;
    report("warn", "preset-unsigned", { path: ["hooks", "presetSettings", preset, "secrets"], message });
  }
}

/** Settings of presets that are not enabled: their senders get 404. */
function auditUnused({ presets: wanted, presetSettings }: GatewaySnapshot["hooks"], report: Report): void {
  for (const name of PRESETS) {
    if (presetSettings[name] === undefined || wanted.includes(name)) continue;
    const message = `have no effect: add '${name}' to hooks.presets`;
    report("warn", "preset-unused", { path: ["hooks", "presetSettings", name], message });
  }
}

/** Events that wait for a heartbeat that never comes by itself. */
function auditHeartbeat({ agents, hooks }: GatewaySnapshot, report: Report): void {
  const { every, model, tools } = agents.defaults.heartbeat;
  if (tools.length > 0) {
    const message = `events from outside can use ${tools.join(", ")}`;
    report("info", "tools", { path: ["agents", "defaults", "heartbeat", "tools"], message });
  }
  if (model && isModelRefused(model, agents)) {
    const message = "not in agents.defaults.models: every heartbeat fails";
    report("error", "model-not-allowed", { path: ["agents", "defaults", "heartbeat", "model"], message });
  }
  if (every > 0) return;
  const waiting = hooks.mappings.some(({ action, wakeMode }) => action === "wake" && wakeMode === "next-heartbeat");
  const message = 'is 0: events of mode "next-heartbeat" wait until something asks for a heartbeat';
  const path = ["agents", "defaults", "heartbeat", "every"];
  report(waiting ? "warn" : "info", "heartbeat-off", { path, message });
}

/** A mapping never runs after one that accepts all its requests. */
function auditShadow(index: number, { all, report }: { all: readonly Mapping[]; report: Report }): void {
  const found = all[index];
  if (!found) return;
  const path: Path = [...pathOf(found, index), "match"];
  const mapping = found.config;
  const own = bare(mapping.match.path);
  if (own !== undefined && RESERVED.includes(own)) {
    report("error", "reserved-path", { path, message: `'/${own}' is an endpoint of its own: this mapping never runs` });
  }
  if (own !== undefined && asRequested(own) !== own) {
    const message = `no request has this path: written so it arrives as '${asRequested(own)}'`;
    report("error", "path-never-asked", { path, message });
  }
  const earlier = all.slice(0, index).find(({ config: { match } }) => {
    const takesPath = match.path === undefined || bare(match.path) === own;
    const takesSource = match.source === undefined || match.source === mapping.match.source;
    return takesPath && takesSource && match.when === undefined;
  });
  if (!earlier) return;
  report("warn", "shadowed", {
    path,
    message: `never runs: '${earlier.id}' before it takes all of its requests`,
  });
}

const bare = (path: string | undefined): string | undefined => path && trimSlashes(path);
