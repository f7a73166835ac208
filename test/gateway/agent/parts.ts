/** An agent with a separate database, a clock that tests move, and a runtime that answers by script. */
import { makeAgent, type Agent } from "../../../src/gateway/agent/agent.ts";
import { agentsSchema, sessionSchema } from "../../../src/gateway/agent/config.ts";
import type { AgentSettings } from "../../../src/gateway/agent/settings.ts";
import { agentMigrations } from "../../../src/gateway/agent/tables.ts";
import { storeTurn, type TurnParts, type TurnRequest, type TurnResult } from "../../../src/gateway/agent/turn.ts";
import type { Clock } from "../../../src/base/clock.ts";
import type { Store } from "../../../src/gateway/database/store.ts";
import { afterTest } from "../../cleanups.ts";
import { openStore } from "../../stores.ts";
import { scriptedRuntime, type Script, type ScriptedRuntime } from "./scripted-runtime.ts";

export const MAIN = "agent:main:main";
export const HOOK = "agent:main:hook:order-1";
export const NEVER = new AbortController().signal;

export interface ManualClock extends Clock {
  /** Advances time, and runs due timers in order. */
  advance(ms: number): void;
  /** Times at which something falls due, earliest first. */
  readonly due: readonly number[];
}

export function manualClock(startMs = Date.UTC(2026, 0, 5, 12)): ManualClock {
  let now = startMs;
  let timers: { at: number; work: () => void }[] = [];
  return {
    now: () => now,
    after(ms, work) {
      const timer = { at: now + Math.max(0, ms), work };
      timers = [...timers, timer].toSorted((a, b) => a.at - b.at);
      return () => void (timers = timers.filter((other) => other !== timer));
    },
    advance(ms) {
      const end = now + ms;
      for (let next = timers[0]; next && next.at <= end; next = timers[0]) {
        timers = timers.slice(1);
        now = next.at;
        next.work();
      }
      now = end;
    },
    get due() {
      return timers.map(({ at }) => at);
    },
  };
}

export function settingsOf(agents: unknown = {}, session: unknown = {}): AgentSettings {
  return { agents: agentsSchema.parse(agents), session: sessionSchema.parse(session) };
}

export interface TestAgent {
  readonly store: Store;
  readonly clock: ManualClock;
  readonly runtime: ScriptedRuntime;
  readonly parts: TurnParts;
  readonly agent: Agent;
  /** Runs a turn and stores it, like the real callers. */
  turn(request: Partial<TurnRequest> & { isEphemeral?: boolean }): Promise<TurnResult>;
}

export interface TestAgentOptions {
  readonly settings?: AgentSettings;
  readonly ctxLen?: number;
  readonly models?: readonly string[];
  readonly path?: string;
}

export function testAgent(script: Script, options: TestAgentOptions = {}): TestAgent {
  const { settings = settingsOf(), models = ["hearth:latest"], path = ":memory:" } = options;
  const store = openStore(agentMigrations, path);
  afterTest(() => store.close());
  const clock = manualClock();
  const runtime = scriptedRuntime(script, options);
  const parts: TurnParts = { runtime, store, clock, settings: () => settings, modelNames: async () => models };
  const agent = makeAgent(parts);
  return {
    store,
    clock,
    runtime,
    parts,
    agent,
    async turn({ isEphemeral = false, ...asked }) {
      const request = {
        runId: Bun.randomUUIDv7(),
        sessionKey: HOOK,
        prompt: "hello",
        tools: [],
        signal: NEVER,
        ...asked,
      };
      const result = await agent.run(request);
      const { record } = result;
      await store.write(() => storeTurn({ ...request, record, isEphemeral, now: clock.now() }));
      return result;
    },
  };
}
