/** Audits who can reach the hooks, and what else of this server they can reach. */
import { isLoopback } from "../../base/index.ts";
import { parseListen } from "../hooks/listen.ts";
import type { AuditParts, Report } from "./report.ts";

export function auditExposure(parts: AuditParts, report: Report): void {
  const { hooks, agents } = parts.snapshot;
  auditListeners(parts, report);
  auditProxies(parts, report);
  if (hooks.callbacks.allowPrivateAddresses) {
    const message = "senders can make this server call machines of its own network";
    report("warn", "callback-private", { path: ["hooks", "callbacks", "allowPrivateAddresses"], message });
  }
  if (hooks.callbacks.allowFromRequest && !hooks.callbacks.secret) {
    const message = "callbacks are not signed: set hooks.callbacks.secret";
    report("warn", "callback-unsigned", { path: ["hooks", "callbacks"], message });
  }
  if (agents.list.length > 0 && hooks.allowedAgentIds === undefined) {
    const message = "absent: senders can reach every agent";
    report("info", "agents-unrestricted", { path: ["hooks", "allowedAgentIds"], message });
  }
}

function auditListeners({ snapshot, hostname }: AuditParts, report: Report): void {
  const { hooks, gateway } = snapshot;
  if (gateway.trustedProxies.length > 0) return;
  const own = parseListen(hooks.listen ?? "");
  const places = [
    { path: ["hooks", "enabled"], hostname },
    ...(own && "hostname" in own ? [{ path: ["hooks", "listen"], hostname: own.hostname }] : []),
  ];
  for (const place of places) {
    if (isLoopback(place.hostname)) continue;
    const message = `the server listens on ${place.hostname} and no proxy is trusted: hooks are reached without TLS`;
    report("warn", "exposed", { path: place.path, message });
  }
}

function auditProxies({ snapshot, hasApiKeys = false }: AuditParts, report: Report): void {
  const { hooks, gateway } = snapshot;
  if (gateway.trustedProxies.length > 0 && hooks.listen === undefined && !hasApiKeys) {
    const message =
      "absent: a proxy in front publishes the listener of the whole server, and no API keys guard the models; " +
      'set it, as in "127.0.0.1:11435" or "unix:/run/hearth/hooks.sock" in a folder that is there, ' +
      "and let the proxy publish that one alone";
    report("warn", "no-own-listener", { path: ["hooks", "listen"], message });
  }
  for (const [i, network] of gateway.trustedProxies.entries()) {
    if (!/\/0+$/.test(network)) continue;
    const message = `${network} is everyone: clients choose the address that their failures are counted by`;
    report("warn", "trusts-everyone", { path: ["gateway", "trustedProxies", i], message });
  }
}
