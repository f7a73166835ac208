import { describe, expect, test } from "bun:test";
import { countEvents, waitingEvents } from "../../../../../src/gateway/agent/events.ts";
import { findSession, historyOf } from "../../../../../src/gateway/agent/sessions.ts";
import { external } from "../../../../../src/gateway/agent/boundary/tainted-text.ts";
import { makeAgentPorts } from "../../../../../src/gateway/hooks/queue/worker/agent-ports.ts";
import { HOOK, NEVER, settingsOf, testAgent } from "../../../agent/parts.ts";
import type { ScriptedAnswer } from "../../../agent/scripted-runtime.ts";

const turn = { runId: "run-1", sessionKey: HOOK, prompt: "go", timeoutMs: 1000, tools: [], signal: NEVER };

function portsOf(answer: ScriptedAnswer, settings = settingsOf()) {
  const asked: string[] = [];
  const { agent, store } = testAgent(() => answer, { settings });
  const heartbeat = { request: (reason: string) => void asked.push(reason) };
  return { ports: makeAgentPorts({ agent, heartbeat, settings: () => settings }), store, asked };
}

describe("the agent's ports for the worker", () => {
  test.each([true, false])(
    "store a turn in its session, and end the session if it is ephemeral: %p",
    async (isEphemeral) => {
      const { ports, store } = portsOf({ text: "done" });
      const result = await ports.runTurn(turn);
      expect((await store.read(() => historyOf(HOOK))).messages).toEqual([]); // running it changed nothing
      await store.write(() => ports.storeTurn({ ...turn, record: result.record, isEphemeral, now: 1 }));
      expect((await store.read(() => historyOf(HOOK))).messages.map(({ message }) => message.role)).toEqual([
        "user",
        "assistant",
      ]);
      expect((await store.read(() => findSession(HOOK)))?.endedAt).toBe(isEphemeral ? 1 : undefined);
    },
  );

  test("put events into the main session under its configured name, up to the limit", async () => {
    const { ports, store, asked } = portsOf({}, settingsOf({}, { mainKey: "Home", maxEvents: 1 }));
    const event = {
      text: external("a"),
      isWrapped: true,
      source: "Webhook",
      wantsHeartbeat: true,
      isDelivered: false,
      now: 1,
    };
    await store.write(() => ports.enqueueEvent(event));
    expect(await store.read(() => waitingEvents({ sessionKey: "agent:main:home", limit: 9 }))).toMatchObject([
      { text: external("a"), wantsHeartbeat: true },
    ]);
    const another = store.write(() => ports.enqueueEvent({ ...event, text: external("b") }));
    await expect(another).rejects.toThrow("1 events wait");
    expect(await store.read(() => countEvents("agent:main:home"))).toBe(1);
    expect(await store.write(() => ports.hastenEvents())).toBe(false); // it wants one already
    ports.requestHeartbeat("hook run-1");
    expect(asked).toEqual(["hook run-1"]);
  });
});
