/**
 * Checks values that requests choose: agents, models, channels, session keys. They run before a request is accepted, so
 * that a sender hears at once of values that cannot work.
 */
import type { AgentsConfig, SessionConfig } from "../../agent/config.ts";
import { findModel, type ModelAnswer, type ModelSource } from "../../agent/models.ts";
import { DEFAULT_AGENT, hookSession } from "../../agent/session-key.ts";
import { turnSettings } from "../../agent/settings.ts";
import { parseThinking } from "../../agent/thinking.ts";
import { AppError, inTime, isTemporary } from "../../../base/index.ts";
import type { AgentAction, HookAction } from "../action.ts";
import type { HooksConfig, MappingConfig } from "../config.ts";
import { Refusal } from "./problems.ts";

export interface KnownChannel {
  readonly id: string;
  readonly isConfigured: boolean;
  /** True if a text is a valid recipient there; false if the channel is not configured. */
  takes(to: string): boolean;
}

export interface Channels {
  /** Finds a platform by id or alias; undefined if unknown. */
  find(name: string): KnownChannel | undefined;
  readonly ids: readonly string[];
}

export interface Checks {
  /** True if hooks may run this agent; undefined: the default one. */
  readonly agent: (id: string | undefined) => boolean;
  /** Checks that requests may name this model, and that it exists. */
  readonly model: (
    reference: string,
    agentId: string | undefined,
  ) => Promise<"ok" | "model_not_allowed" | "model_unknown">;
  /** The name of the turn's model if it is known to be missing. Answers quickly. */
  readonly missingModel: (reference: string | undefined, agentId: string | undefined) => Promise<string | undefined>;
  /** The reason why a request may not use this session; undefined: it may. */
  readonly sessionKey: (key: string, agentId: string | undefined) => string | undefined;
  /** True if a text is a level of thinking. */
  readonly thinking: (level: string) => boolean;
  readonly channels: () => Channels;
}

export interface CheckParts extends ModelSource {
  readonly settings: () => {
    readonly hooks: Pick<HooksConfig, "allowedAgentIds">;
    readonly agents: AgentsConfig;
    readonly session: SessionConfig;
  };
  readonly channels: () => Channels;
}

/** True if the agent exists and hooks may run it; undefined: the default one. */
export function hooksMayRun(
  { hooks, agents }: Pick<ReturnType<CheckParts["settings"]>, "hooks" | "agents">,
  id = DEFAULT_AGENT,
): boolean {
  const allowed = hooks.allowedAgentIds ?? ["*"];
  return (allowed.includes("*") || allowed.includes(id)) && turnSettings(agents, id) !== undefined;
}

/** A model that was found counts as present for this long. */
const FOUND_MS = 60_000;
const FOUND_MAX = 100;
/** Longest delay of a sender by the check for its model. */
const PATIENCE_MS = 300;

/** Makes checks with the same results as the agent's own. */
export function makeChecks({ settings, channels, ...models }: CheckParts): Checks {
  const foundAt = new Map<string, number>();
  const find = async (reference: string | undefined, agentId = DEFAULT_AGENT): Promise<ModelAnswer | undefined> => {
    const { agents } = settings();
    try {
      return await findModel({ agents, reference, fallback: turnSettings(agents, agentId)?.model }, models);
    } catch (error) {
      if (isTemporary(error)) return undefined; // the model server is down: the turn checks again
      throw error;
    }
  };
  return {
    channels,
    thinking: (level) => parseThinking(level) !== undefined,
    agent: (id) => hooksMayRun(settings(), id),
    async model(reference, agentId) {
      const answer = await find(reference, agentId);
      return answer && "error" in answer ? answer.error.code : "ok";
    },
    async missingModel(reference, agentId = DEFAULT_AGENT) {
      const { agents } = settings();
      const wanted = reference ?? turnSettings(agents, agentId)?.model ?? "";
      if (performance.now() - (foundAt.get(wanted) ?? -Infinity) < FOUND_MS) return undefined;
      const late = (): undefined => undefined;
      const answer = await inTime(find(reference, agentId), { ms: PATIENCE_MS, late }).catch(late);
      if (!answer) return undefined;
      if ("error" in answer) return answer.error.code === "model_unknown" ? answer.error.name : undefined;
      if (foundAt.size >= FOUND_MAX) foundAt.clear();
      foundAt.set(wanted, performance.now());
      return undefined;
    },
    sessionKey(requested, agentId = DEFAULT_AGENT) {
      try {
        hookSession({ requested, agentId, runId: "", session: settings().session });
        return undefined;
      } catch (error) {
        if (error instanceof AppError) return error.message;
        throw error;
      }
    },
  };
}

/** The finding for an unknown level of thinking. */
export const NO_LEVEL = "no such level; ignored";

export interface Checked {
  readonly action: HookAction;
  readonly warnings: readonly string[];
}

/** The model named by the mapping, not by the request. */
export const ownModelOf = ({ model }: Pick<MappingConfig, "model">): string | undefined =>
  model?.includes("{{") ? undefined : model?.trim();

/**
 * A validated action, with the channel's canonical id and without ignored fields. Throws a `Refusal`.
 * @param ownModel the model that the configuration names: if it is missing, the run waits for it
 */
export async function checkAction(action: HookAction, checks: Checks, ownModel?: string): Promise<Checked> {
  if (action.kind === "wake") return { action, warnings: [] };
  const { agentId } = action;
  if (!checks.agent(agentId)) throw new Refusal("agent_not_allowed");
  const { channel, warning } = channelOf(action, checks.channels());
  if (action.sessionKey !== undefined) {
    const reason = checks.sessionKey(action.sessionKey, agentId);
    if (reason !== undefined) throw new Refusal("session_key_not_allowed", { reason });
  }
  const isOwn = action.model === undefined || action.model === ownModel;
  if (action.model !== undefined) {
    const verdict = await checks.model(action.model, agentId);
    if (verdict !== "ok" && !(isOwn && verdict === "model_unknown")) throw new Refusal(verdict);
  }
  const missing = isOwn ? await checks.missingModel(action.model, agentId) : undefined;
  const waits = missing && `model: '${missing}' is missing; the run waits for it, a day at most`;
  const { thinking, ...rest } = action;
  const isLevel = thinking !== undefined && checks.thinking(thinking);
  const ignored = thinking === undefined || isLevel ? undefined : `thinking: ${NO_LEVEL}`;
  return {
    action: { ...rest, channel, ...(isLevel ? { thinking } : {}) },
    warnings: [warning, ignored, waits].filter((each) => each !== undefined),
  };
}

function channelOf(
  { channel, to, deliver }: AgentAction,
  channels: Channels,
): { readonly channel: string; readonly warning?: string } {
  if (channel.trim().toLowerCase() === "last") return { channel: "last" };
  const found = channels.find(channel);
  if (!found) {
    const details = [{ field: "channel", reason: `expected ${["last", ...channels.ids].join("|")}` }];
    throw new Refusal("channel_not_allowed", { details });
  }
  const { id } = found;
  if (!deliver) return { channel: id };
  if (!found.isConfigured) {
    return { channel: id, warning: "channel: this channel is not configured; the reply cannot be delivered" };
  }
  if (to === undefined || found.takes(to)) return { channel: id };
  return { channel: id, warning: "to: no recipient of this channel; the reply cannot be delivered there" };
}
