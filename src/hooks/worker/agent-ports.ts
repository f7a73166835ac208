/** The agent as the worker needs it: its sessions, its events and its heartbeat. */
import type { Agent } from "../../agent/agent.ts";
import { replyToSend } from "../../agent/ack.ts";
import { enqueueEvent } from "../../agent/events.ts";
import { replyOf } from "../../agent/reply.ts";
import { mainSessionKey } from "../../agent/session-key.ts";
import type { AgentSettings } from "../../agent/settings.ts";
import { storeTurn } from "../../agent/turn.ts";
import { assert } from "../../base/errors.ts";
import type { WorkerPorts } from "./ports.ts";

export interface AgentPortParts {
  readonly agent: Agent;
  readonly heartbeat: { request(reason: string): void };
  readonly settings: () => AgentSettings;
}

export type AgentPorts = Pick<
  WorkerPorts,
  "runTurn" | "storeTurn" | "enqueueEvent" | "requestHeartbeat" | "isAcknowledgement"
>;

/** Beside an acknowledgement every word of a hook's reply counts: a short alert must not pass for one. */
const ACK_CHARS_MAX = 0;

export function makeAgentPorts({ agent, heartbeat, settings }: AgentPortParts): AgentPorts {
  return {
    async runTurn(request) {
      const result = await agent.run(request);
      return { ...result, text: replyOf(result, ACK_CHARS_MAX) ?? result.text };
    },
    storeTurn(db, { runId, sessionKey, result, isIsolated, now }) {
      assert(result.record, "a turn that ended well has a record");
      storeTurn(db, { runId, sessionKey, record: result.record, isEphemeral: isIsolated, now });
    },
    // all of the worker's are for the main session, whatever that is called
    enqueueEvent(db, event) {
      const { session } = settings();
      const options = { eventsMax: session.maxEvents, overflow: "refuse" } as const;
      enqueueEvent(db, { ...event, sessionKey: mainSessionKey(session) }, options);
    },
    requestHeartbeat: (reason) => heartbeat.request(reason),
    isAcknowledgement: (text) => replyToSend(text, ACK_CHARS_MAX) === undefined,
  };
}
