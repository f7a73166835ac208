/** The settings of one agent's turns: its own over the defaults. */
import type { AgentsConfig, SessionConfig } from "./config.ts";
import { DEFAULT_AGENT } from "./session-key.ts";
import type { ThinkingLevel } from "./thinking.ts";

/** The part of a configuration that the agent reads; read anew for every turn. */
export interface AgentSettings {
  readonly agents: AgentsConfig;
  readonly session: SessionConfig;
}

export interface TurnSettings {
  readonly model: string;
  readonly systemPrompt: string | undefined;
  readonly thinking: ThinkingLevel | undefined;
  readonly timeoutMs: number;
  /** Tools of turns whose prompt holds no outside text, such as heartbeats. */
  readonly tools: readonly string[];
}

const MS_PER_S = 1000;

/** Undefined if there is no such agent. */
export function turnSettings({ defaults, list }: AgentsConfig, agentId: string): TurnSettings | undefined {
  const own = list.find(({ id }) => id === agentId);
  if (!own && agentId !== DEFAULT_AGENT) return undefined;
  return {
    model: own?.model ?? defaults.model,
    systemPrompt: own?.systemPrompt ?? defaults.systemPrompt,
    thinking: own?.thinking ?? defaults.thinking,
    timeoutMs: (own?.timeoutSeconds ?? defaults.timeoutSeconds) * MS_PER_S,
    tools: own?.tools ?? defaults.tools ?? [],
  };
}
