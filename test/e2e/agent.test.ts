/** Turns of the agent on the embedded model, through the real runtime. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { makeAgent, type Agent } from "../../src/gateway/agent/agent.ts";
import { countEvents, enqueueEvent } from "../../src/gateway/agent/events.ts";
import { Heartbeat, type HeartbeatStatus } from "../../src/gateway/agent/heartbeat.ts";
import { historyOf } from "../../src/gateway/agent/sessions.ts";
import { agentMigrations } from "../../src/gateway/agent/tables.ts";
import { storeTurn, type TurnRequest, type TurnResult } from "../../src/gateway/agent/turn.ts";
import { systemClock } from "../../src/base/clock.ts";
import { makeLogger } from "../../src/base/log.ts";
import { external } from "../../src/gateway/agent/boundary/tainted-text.ts";
import type { Store } from "../../src/gateway/database/store.ts";
import { alone } from "../../src/gateway/database/peers.ts";
import { makeRuntime } from "../../src/runtime/local.ts";
import { RunnerProcess } from "../../src/runtime/processes/runner-process.ts";
import type { Runtime } from "../../src/runtime/requests/runtime.ts";
import { MAIN, NEVER, settingsOf } from "../gateway/agent/parts.ts";
import type { Store as ModelStore } from "../../src/library/store/store.ts";
import { answering, openStore } from "../stores.ts";
import { installSeeded } from "./seeded-model.ts";
import { RUNNER } from "../program.ts";
import { BUN_ENV } from "../bun-env.ts";

setDefaultTimeout(300_000);

const home = mkdtempSync(join(tmpdir(), "hearth-agent-"));
/** Prompts contain the time, and greedy answers depend on every token of them. */
const clock = { ...systemClock, now: () => Date.UTC(2026, 0, 5, 12) };
const settings = settingsOf({ defaults: { heartbeat: { every: 0 } } });
const runtimes: Runtime[] = [];
let runtime: Runtime;
let agent: Agent;
let store: Store;

function start(models: ModelStore): { runtime: Runtime; agent: Agent } {
  const spawn = {
    command: RUNNER,
    env: { PATH: process.env["PATH"], HOME: home, ...BUN_ENV },
    loadTimeoutMs: 120_000,
  };
  const own = makeRuntime({
    store: models,
    pool: {
      backend: "auto",
      ctxLen: 2048,
      numParallel: 1,
      maxLoaded: undefined,
      maxQueue: 8,
      keepAliveMs: Infinity,
      cacheDir: undefined,
      freeBytes: () => 2 ** 34,
      start: (load, signal) => RunnerProcess.start(load, spawn, signal),
    },
    now: () => new Date(),
  });
  runtimes.push(own);
  const modelNames = async () => (await models.list()).map(({ displayName }) => displayName);
  return {
    runtime: own,
    agent: makeAgent({ runtime: own, store, clock, settings: () => settings, modelNames }),
  };
}

beforeAll(async () => {
  store = openStore(agentMigrations, join(home, "gateway.db"));
  // The likeliest answer calls the tool.
  ({ runtime, agent } = start(await installSeeded(join(home, "models"), { parameters: { temperature: 0 } })));
});

afterAll(async () => {
  for (const each of runtimes) await each.close(0);
  await store.close();
  rmSync(home, { recursive: true, force: true });
});

async function turn(sessionKey: string, asked: Partial<TurnRequest> & { prompt: string }): Promise<TurnResult> {
  const request = { runId: Bun.randomUUIDv7(), sessionKey, tools: [], signal: NEVER, ...asked };
  const result = await agent.run(request);
  const { record } = result;
  await store.write(() => storeTurn({ ...request, record, isEphemeral: false, now: Date.now() }));
  return result;
}

test("a turn with the same session key continues the conversation", async () => {
  const key = "agent:main:hook:e2e-talk";
  const first = await turn(key, { prompt: "Say hello." });
  const second = await turn(key, { prompt: "Say hello." });
  expect([first.status, second.status, first.model]).toEqual(["ok", "ok", "hearth:latest"]);
  expect([first.text, second.text]).not.toContain("");
  expect(second.usage.promptTokens).toBeGreaterThan(first.usage.promptTokens + first.usage.completionTokens);
  const said = (await store.read(() => historyOf(key))).messages.map(({ message: { role, content } }) => [
    role,
    content,
  ]);
  expect(said.filter(([role]) => role === "assistant")).toEqual([
    ["assistant", first.text],
    ["assistant", second.text],
  ]);
});

test("a turn that runs out of time stops the model", async () => {
  let runOut = (): void => {};
  const clock = {
    now: Date.now,
    after: (_: number, work: () => void) => {
      runOut = work;
      return () => {};
    },
  };
  const inTime = makeAgent({
    runtime,
    store,
    clock,
    settings: () => settings,
    modelNames: async () => ["hearth:latest"],
  });
  const result = await inTime.run({
    runId: "e2e-time",
    sessionKey: "agent:main:hook:e2e-time",
    prompt: "Say hello.",
    tools: [],
    signal: NEVER,
    onText: () => runOut(), // in the middle of the answer
  });
  expect(result).toMatchObject({ status: "timeout", error: "the turn took longer than 600 s" });
  expect(result.text).not.toBe("");
  while (runtime.activity().running > 0) await Bun.sleep(10); // endless, if the model had not stopped
});

test("the model calls a tool and answers with its result", async () => {
  const asked = { prompt: "What time is it now? Use the tool.", tools: ["current_time"] };
  const result = await turn("agent:main:hook:e2e-tool", asked);
  expect(result.status).toBe("ok");
  expect(result.usage.toolCalls).toBeGreaterThan(0);
  const messages = (await store.read(() => historyOf("agent:main:hook:e2e-tool"))).messages.map(
    ({ message }) => message,
  );
  expect(messages.slice(0, 3).map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
  expect(messages.at(-1)).toEqual({ role: "assistant", content: result.text });
});

test("a conversation that outgrows the context is compacted and continues", async () => {
  const key = "agent:main:hook:e2e-long";
  const list = Array.from({ length: 90 }, (_, i) => `item ${i}`).join(", ");
  for (let i = 0; i < 6; i++) {
    const { status, usage, error } = await turn(key, { prompt: `${list}. Answer with one word: ok.` });
    expect([status, error]).toEqual(["ok", undefined]);
    expect(usage.promptTokens).toBeLessThan(2048 * 0.7 + 1);
  }
  const { compaction, messages } = await store.read(() => historyOf(key));
  expect(compaction!.droppedCount + messages.length).toBe(12);
});

test("a heartbeat reads the events that wait and removes them", async () => {
  const models = await installSeeded(join(home, "steady"), { isSteady: true }); // its prompt contains the time
  const heart = new Heartbeat({
    peers: alone(),
    agent: start(models).agent,
    store,
    clock: systemClock,
    settings: () => settings,
    delivery: {
      resolveTarget: () => answering({ channel: "telegram", to: "42" }),
      addReply: () => answering(undefined),
      sendReplies: () => {},
    },
    log: makeLogger({ write: () => {}, now: Date.now, debug: false }),
  });
  const ended = new Promise<HeartbeatStatus>((resolve) => heart.onStatus(resolve));
  const text = external("The backup of db1 failed.");
  const event = { sessionKey: MAIN, text, isWrapped: true, source: "Webhook", wantsHeartbeat: true, now: Date.now() };
  await store.write(() => enqueueEvent(event, { eventsMax: 9 }));
  heart.request("wake");
  expect(["sent", "ok-token", "ok-empty"]).toContain((await ended).kind);
  expect(await store.read(() => countEvents(MAIN))).toBe(0);
  expect((await store.read(() => historyOf(MAIN))).messages[0]?.message.content).toContain("The backup of db1 failed.");
  await heart.stop();
});
