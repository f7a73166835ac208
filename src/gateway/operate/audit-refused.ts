/**
 * Mappings whose every request would be refused because of other settings, or missing ones. Only settings without
 * templates can be checked in advance.
 */
import { resolveModel } from "../agent/models.ts";
import { urlProblem } from "../hooks/queue/callback.ts";
import { hooksMayRun } from "../hooks/ingress/checks.ts";
import type { Mapping } from "../hooks/mapping/index.ts";
import type { GatewaySnapshot } from "./snapshot.ts";

const REFUSED = "request of this mapping is refused";

/** @param report one finding about a key of the mapping */
export function auditRefused(
  { config, preset }: Mapping,
  { hooks, agents }: GatewaySnapshot,
  report: (id: string, key: string, message: string) => void,
): void {
  const { action, agentId, model, transform, callbackUrl } = config;
  const key = action === "wake" ? "textTemplate" : "messageTemplate";
  if (config[key] === undefined && !preset && !transform) {
    report("no-text", key, `not set, and nothing else makes a text: every ${REFUSED}`);
  }
  if (action === "wake") return;
  const problem = callbackUrl && urlProblem(callbackUrl, { allowPrivate: hooks.callbacks.allowPrivateAddresses });
  if (problem) report("callback-impossible", "callbackUrl", `${problem}: no outcome of this mapping is reported`);
  if (!hooksMayRun({ hooks, agents }, agentId)) {
    report("agent-not-allowed", "agentId", `no such agent, or hooks.allowedAgentIds leaves it out: every ${REFUSED}`);
  }
  if (model && isModelRefused(model, agents)) {
    report("model-not-allowed", "model", `not in agents.defaults.models: every ${REFUSED}`);
  }
}

/** True if `agents.defaults.models` excludes a model. */
export function isModelRefused(model: string, agents: GatewaySnapshot["agents"]): boolean {
  if (model.includes("{{")) return false;
  const answer = resolveModel({ agents, names: [], reference: model });
  return "error" in answer && answer.error.code === "model_not_allowed";
}
