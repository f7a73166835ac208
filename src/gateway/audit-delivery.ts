/** What an operator should know of where replies go: channels and recipients that the configuration names. */
import type { Path } from "../config/positions.ts";
import type { MappingConfig } from "../hooks/config.ts";
import type { AtMapping } from "./report.ts";

/** Where a mapping's replies go. */
export function auditDelivery(
  { channel, to, fallbackChannels }: MappingConfig,
  { path, parts, report }: AtMapping,
): void {
  const configured = [...parts.channels.values()].filter(({ isConfigured }) => isConfigured);
  const at: Path = [...path, "channel"];
  const { heartbeat } = parts.snapshot.agents.defaults;
  if (channel === "last" && configured.length === 0) {
    const message = "replies go nowhere: no channel is configured";
    report("warn", "no-channel", { path: at, message });
  } else if (channel === "last" && !to && !heartbeat.to && !configured.some(({ hasDefault }) => hasDefault)) {
    const message = "replies go nowhere: no channel has a defaultTo, and agents.defaults.heartbeat.to is not set";
    report("warn", "no-recipient", { path: at, message });
  }
  const found = parts.channels.get(channel);
  if (to && !to.includes("{{") && found?.isConfigured && !found.takes(to)) {
    report("error", "bad-recipient", { path: [...path, "to"], message: `no recipient of ${channel}` });
  }
  auditChannel({ channel, to }, { path: at, parts, report });
  auditFallback(fallbackChannels, { path, parts, report });
}

/** Where replies go that their channel refuses; `path` is that of what lists the channels. */
export function auditFallback(names: readonly string[] | undefined, { path, parts, report }: AtMapping): void {
  for (const [i, channel] of (names ?? []).entries()) {
    auditChannel({ channel }, { path: [...path, "fallbackChannels", i], parts, report });
  }
}

function auditChannel({ channel, to }: { channel: string; to?: string | undefined }, at: AtMapping): void {
  const { path, parts, report } = at;
  if (channel === "last") return;
  const found = parts.channels.get(channel);
  const known = [...parts.channels.keys()].join(", ");
  if (!found) report("error", "unknown-channel", { path, message: `no channel '${channel}'; known: last, ${known}` });
  else if (!found.isConfigured) {
    report("error", "channel-not-configured", {
      path,
      message: `channels.${channel} is missing, disabled or unusable`,
    });
  } else if (!to && !found.hasDefault) {
    const message = `channels.${channel}.defaultTo is not set, and no other recipient is given`;
    report("warn", "no-recipient", { path, message });
  }
}
