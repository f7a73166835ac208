import { describe, expect, test } from "bun:test";
import { countEvents, waitingEvents } from "../../../src/agent/events.ts";
import { findSession, historyOf } from "../../../src/agent/sessions.ts";
import { external } from "../../../src/base/passage.ts";
import { makeAgentPorts } from "../../../src/hooks/worker/agent-ports.ts";
import { HOOK, NEVER, settingsOf, testAgent } from "../../agent/parts.ts";
import type { ScriptedAnswer } from "../../agent/scripted-runtime.ts";

const turn = { runId: "run-1", sessionKey: HOOK, prompt: "go", timeoutMs: 1000, tools: [], signal: NEVER };

function portsOf(answer: ScriptedAnswer, settings = settingsOf()) {
  const asked: string[] = [];
  const { agent, db } = testAgent(() => answer, { settings });
  const heartbeat = { request: (reason: string) => void asked.push(reason) };
  return { ports: makeAgentPorts({ agent, heartbeat, settings: () => settings }), db, asked };
}

describe("the agent, for the worker", () => {
  test.each([true, false])(
    "stores a turn in its session, which ends with it where it is the run's own: %p",
    async (isEphemeral) => {
      const { ports, db } = portsOf({ text: "done" });
      const result = await ports.runTurn(turn);
      expect(historyOf(db, HOOK).messages).toEqual([]); // running it changed nothing
      ports.storeTurn(db, { ...turn, record: result.record, isEphemeral, now: 1 });
      expect(historyOf(db, HOOK).messages.map(({ message }) => message.role)).toEqual(["user", "assistant"]);
      expect(findSession(db, HOOK)?.endedAt).toBe(isEphemeral ? 1 : undefined);
    },
  );

  test("puts events into the main session, by whatever name, as many as may wait", () => {
    const { ports, db, asked } = portsOf({}, settingsOf({}, { mainKey: "Home", maxEvents: 1 }));
    const event = {
      text: external("a"),
      isWrapped: true,
      source: "Webhook",
      wantsHeartbeat: true,
      isDelivered: false,
      now: 1,
    };
    ports.enqueueEvent(db, event);
    expect(waitingEvents(db, { sessionKey: "agent:main:home", limit: 9 })).toMatchObject([
      { text: external("a"), wantsHeartbeat: true },
    ]);
    expect(() => ports.enqueueEvent(db, { ...event, text: external("b") })).toThrow("1 events wait");
    expect(countEvents(db, "agent:main:home")).toBe(1);
    ports.requestHeartbeat("hook run-1");
    expect(asked).toEqual(["hook run-1"]);
  });
});
