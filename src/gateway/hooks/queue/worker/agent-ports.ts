/** The agent's side of the worker's ports: its sessions, its events and its heartbeat. */
import type { Agent } from "../../../agent/agent.ts";
import { enqueueEvent, hastenEvents, openEvents } from "../../../agent/events.ts";
import { mainSessionKey } from "../../../agent/session-key.ts";
import type { AgentSettings } from "../../../agent/settings.ts";
import { storeTurn } from "../../../agent/turn.ts";
import type { WorkerPorts } from "./ports.ts";

export interface AgentPortParts {
  readonly agent: Agent;
  readonly heartbeat: { request(reason: string): void };
  readonly settings: () => AgentSettings;
}

export type AgentPorts = Pick<
  WorkerPorts,
  "runTurn" | "storeTurn" | "enqueueEvent" | "openEvents" | "hastenEvents" | "requestHeartbeat"
>;

export function makeAgentPorts({ agent, heartbeat, settings }: AgentPortParts): AgentPorts {
  return {
    runTurn: (request) => agent.run(request),
    storeTurn,
    // all events of the worker go to the main session
    enqueueEvent(event) {
      const { session } = settings();
      return enqueueEvent({ ...event, sessionKey: mainSessionKey(session) }, { eventsMax: session.maxEvents });
    },
    openEvents() {
      const { session } = settings();
      return openEvents(mainSessionKey(session), { eventsMax: session.maxEvents });
    },
    hastenEvents: () => hastenEvents(mainSessionKey(settings().session)),
    requestHeartbeat: (reason) => heartbeat.request(reason),
  };
}
