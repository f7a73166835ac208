/** Audits the targets of replies: channels and recipients that the configuration names. */
import { unknownNameMessage } from "../../base/index.ts";
import type { Path } from "../../base/config/index.ts";
import { isLast } from "../channels/resolve.ts";
import type { MappingConfig } from "../hooks/config.ts";
import { makeMappings } from "../hooks/mapping/index.ts";
import type { GatewaySnapshot } from "./snapshot.ts";
import type { AtMapping, AuditParts, Report } from "./report.ts";

/** Audits the target of a mapping's replies. */
export function auditDelivery(
  { channel, to, fallbackChannels }: MappingConfig,
  { path, parts, report }: AtMapping,
): void {
  if (channel === "last" && !parts.channels.has("last")) {
    const message = "replies go nowhere: no channel is configured";
    report("warn", "no-channel", { path: [...path, "channel"], message });
  }
  auditChannel({ channel, to }, { path: [...path, "channel"], parts, report });
  auditFallback(fallbackChannels, { path, parts, report });
}

/** Audits fallback channels; `path` is that of the list. */
export function auditFallback(names: readonly string[] | undefined, { path, parts, report }: AtMapping): void {
  for (const [i, channel] of (names ?? []).entries()) {
    auditChannel({ channel }, { path: [...path, "fallbackChannels", i], parts, report });
  }
}

/** Audits the target of the heartbeat's answers. */
export function auditHeartbeatTarget(parts: AuditParts, report: Report): void {
  const { target: channel, to } = parts.snapshot.agents.defaults.heartbeat;
  const path: Path = ["agents", "defaults", "heartbeat", "target"];
  if (channel !== "none") auditChannel({ channel, to }, { path, parts, report });
}

/** Audits messages without a recipient, before the main session has spoken to one. */
export function auditLast({ channels, snapshot }: AuditParts, report: Report): void {
  const last = channels.get("last");
  const { target, to } = snapshot.agents.defaults.heartbeat;
  const willSpeak = target !== "none" && to !== undefined;
  if (!last || last.hasDefault || willSpeak) return;
  const message = `not set, and agents.defaults.heartbeat.to neither: messages to 'last', which is ${last.id}, have no recipient`;
  const severity = sendsToLast(snapshot) ? "warn" : "info";
  report(severity, "no-recipient", { path: ["channels", last.id, "defaultTo"], message });
}

/** True if the configuration sends something to `last`; false: all replies of mappings have recipients. */
export function sendsToLast(snapshot: GatewaySnapshot): boolean {
  const { prompt, target } = snapshot.agents.defaults.heartbeat;
  const { all } = makeMappings(snapshot);
  if (!isLast(target) || prompt !== undefined || all.length === 0) return true;
  return !all.every(({ config: { action, deliver, channel, to } }) => {
    return action === "agent" && deliver && (to !== undefined || !isLast(channel));
  });
}

/** @param at the place in the configuration that names the channel and its recipient */
function auditChannel(asked: { channel: string; to?: string | undefined }, at: AtMapping): void {
  const { path, parts, report } = at;
  const [channel, to] = [asked.channel.trim().toLowerCase(), asked.to];
  const found = parts.channels.get(channel);
  if (!found) {
    const names = ["last", ...parts.channels.keys().filter((name) => name !== "last")];
    const message = unknownNameMessage(`no channel '${channel}'`, channel, names);
    if (!isLast(channel)) report("error", "unknown-channel", { path, message });
  } else if (!found.isConfigured) {
    const message = `channels.${channel} is missing, disabled or unusable`;
    report("error", "channel-not-configured", { path, message });
  } else if (to && !to.includes("{{") && !found.takes(to)) {
    const message = isLast(channel)
      ? `no recipient of ${found.id}, which 'last' is at first`
      : `no recipient of ${channel}`;
    report(isLast(channel) ? "warn" : "error", "bad-recipient", { path: [...path.slice(0, -1), "to"], message });
  } else if (!to && !found.hasDefault && !isLast(channel)) {
    const message = `channels.${channel}.defaultTo is not set, and no other recipient is given`;
    report("warn", "no-recipient", { path, message });
  }
}
