import { describe, expect, test } from "bun:test";
import { enqueueEvent, waitingEvents } from "../../../src/gateway/agent/events.ts";
import { findSession, historyOf, listEntries } from "../../../src/gateway/agent/sessions.ts";
import { storeTurn } from "../../../src/gateway/agent/turn.ts";
import { AppError } from "../../../src/base/errors.ts";
import { external } from "../../../src/gateway/agent/boundary/tainted-text.ts";
import { makeAgent } from "../../../src/gateway/agent/agent.ts";
import { HOOK, NEVER, settingsOf, testAgent } from "./parts.ts";
import { tokensOf } from "./scripted-runtime.ts";

const NOW_LINE = "\n\nCurrent time: 2026-01-05T12:00:00Z";
const call = (name: string, args: Record<string, unknown> = {}, id?: string) => ({
  ...(id === undefined ? {} : { id }),
  function: { name, arguments: args },
});

describe("a turn", () => {
  test("answers, and reports its usage", async () => {
    const { turn, runtime } = testAgent(() => ({ text: "good day to you" }));
    const texts: string[] = [];
    const result = await turn({ prompt: "hello there", onText: (text) => texts.push(text) });
    expect(result).toMatchObject({ text: "good day to you", status: "ok", model: "hearth:latest", isTruncated: false });
    expect(result.usage).toEqual({ promptTokens: 6, completionTokens: 4, rounds: 1, toolCalls: 0 });
    expect(texts.join("")).toBe("good day to you");
    expect(runtime.requests[0]).toMatchObject({
      isOutside: true,
      messages: [{ role: "user", content: `hello there${NOW_LINE}` }],
      truncate: false, // no silent truncation
      shift: false,
    });
  });

  test("continues only the conversation of its session", async () => {
    const { turn, runtime } = testAgent((_, i) => ({ text: `answer ${i}` }));
    await turn({ prompt: "first" });
    await turn({ prompt: "elsewhere", sessionKey: "agent:main:hook:order-2" });
    await turn({ prompt: "second" });
    expect(runtime.requests[2]?.messages.map(({ role, content }) => [role, content])).toEqual([
      ["user", `first${NOW_LINE}`],
      ["assistant", "answer 0"],
      ["user", `second${NOW_LINE}`],
    ]);
  });

  test("asks no model once another process may have its run", async () => {
    const { turn, runtime } = testAgent(() => ({ calls: [call("current_time")] }));
    const lost = new AbortController();
    let checks = 0;
    const result = await turn({
      tools: ["current_time"],
      signal: lost.signal,
      checkTime: () => void (++checks === 2 && lost.abort()),
    });
    expect([result.status, checks, runtime.requests.length]).toEqual(["cancelled", 2, 1]);
  });

  test("puts the agent's system prompt first", async () => {
    const settings = settingsOf({
      defaults: { systemPrompt: "be brief" },
      list: [{ id: "ops", systemPrompt: "be loud" }],
    });
    const { turn, runtime } = testAgent(() => ({ text: "yes" }), { settings });
    await turn({});
    await turn({ sessionKey: "agent:ops:hook:a" });
    expect(runtime.requests.map(({ messages }) => messages[0])).toEqual([
      { role: "system", content: "be brief" },
      { role: "system", content: "be loud" },
    ]);
  });

  test("marks an answer that ends at the context's limit", async () => {
    const { turn, store } = testAgent(() => ({ text: "and so", reason: "length" }));
    expect((await turn({})).isTruncated).toBe(true);
    expect((await store.read(() => listEntries({ sessionKey: HOOK, limit: 9 }))).at(-1)?.body).toMatchObject({
      isTruncated: true,
    });
  });

  test("with an ephemeral session ends that session", async () => {
    const { turn, store, runtime } = testAgent(() => ({ text: "done" }));
    await turn({ sessionKey: "agent:main:hook:once", isEphemeral: true });
    expect(await store.read(() => findSession("agent:main:hook:once"))).toMatchObject({
      isEphemeral: true,
      endedAt: expect.any(Number),
    });
    const again = await turn({ sessionKey: "agent:main:hook:once" });
    expect([again.status, again.error]).toEqual(["error", "session 'agent:main:hook:once' has ended"]);
    expect(runtime.requests.length).toBe(1);
  });

  test("passes on a requested thinking level, and none by default", async () => {
    const { turn, runtime } = testAgent(() => ({ text: "yes", thinking: "hm" }));
    for (const thinking of [undefined, "off", "Min", "mid", "x-high", "deep"]) {
      await turn(thinking === undefined ? {} : { thinking });
    }
    expect(runtime.requests.map(({ think }) => think)).toEqual([undefined, false, "low", "medium", "max", undefined]);
    expect(runtime.requests[1]?.messages.map(({ thinking }) => thinking)).toEqual([undefined, undefined, undefined]);
  });
});

describe("a turn that fails", () => {
  test.each([
    ["busy", true],
    ["runner", true],
    ["upstream", true],
    ["bad_request", false],
    ["not_found", false],
  ] as const)("with %s reports whether it may be tried again, and stores nothing", async (code, isTemporary) => {
    const { turn, store } = testAgent(() => ({ error: new AppError(code, "no luck") }));
    await store.write(() => enqueueEvent(event("seen"), { eventsMax: 9 }));
    expect(await turn({})).toMatchObject({ status: "error", error: "no luck", isTemporary, text: "" });
    expect(await store.read(() => findSession(HOOK))).toBeUndefined();
    expect((await store.read(() => waitingEvents({ sessionKey: HOOK, limit: 9 }))).length).toBe(1);
  });

  test.each([
    ["a bug, which may not happen again,", new TypeError("undefined is not"), true],
    ["a registry that is away", new AppError("registry", "away"), true],
    ["a bad request", new AppError("bad_request", "no"), false],
  ])("by %s reports whether it may be tried again", async (_, error, isTemporary) => {
    const { turn } = testAgent(() => ({ error }));
    expect(await turn({})).toMatchObject({ status: "error", isTemporary });
  });

  test("before any model began reports it with the time to wait; after a tool call it counts as begun", async () => {
    const error = new AppError("busy", "full", { isUntried: true, retryAfterMs: 7000 });
    const { turn } = testAgent(() => ({ error }));
    expect(await turn({})).toMatchObject({ status: "error", isUntried: true, retryAfterMs: 7000 });
    const calling = testAgent((_, i) => (i === 0 ? { calls: [call("current_time")] } : { error }));
    expect(await calling.turn({ tools: ["current_time"] })).toMatchObject({ status: "error", isUntried: false });
  });

  test("because its model is missing may be tried again; one whose model is not allowed may not", async () => {
    const models: string[] = [];
    const { turn } = testAgent(() => ({ text: "hi" }), { models });
    expect(await turn({ model: "later" })).toMatchObject({
      status: "error",
      error: "model 'later' not found",
      model: "later",
      isUntried: true,
      isTemporary: true,
      isModelMissing: true,
    });
    models.push("later:latest");
    expect(await turn({ model: "later" })).toMatchObject({ status: "ok", model: "later:latest" });
    const limited = testAgent(() => ({}), { settings: settingsOf({ defaults: { models: { hearth: {} } } }) });
    expect(await limited.turn({ model: "other" })).toMatchObject({ isUntried: false, isTemporary: false });
  });

  test("because its model, agent or tool is not available names it", async () => {
    const settings = settingsOf({ defaults: { models: { "hearth:latest": {} } } });
    const { turn, runtime } = testAgent(() => ({ text: "yes" }), { settings });
    expect((await turn({ model: "other" })).error).toBe("model 'other' is not in agents.defaults.models");
    expect((await turn({ sessionKey: "agent:gone:hook:a" })).error).toBe("there is no agent 'gone'");
    expect((await turn({ tools: ["exec"] })).error).toContain("got exec");
    expect(runtime.requests).toEqual([]);
  });

  test("by its time limit stops the model, and returns the text so far", async () => {
    const { turn, clock, runtime } = testAgent(() => ({ text: "slow words", until: new Promise(() => {}) }));
    let begun = (): void => {};
    const started = new Promise<void>((resolve) => (begun = resolve));
    const running = turn({ timeoutMs: 5000, onText: begun });
    await started;
    clock.advance(4999);
    expect(runtime.stopped).toEqual([]);
    clock.advance(1);
    expect(await running).toMatchObject({ status: "timeout", text: "slow ", error: "the turn took longer than 5 s" });
    expect(runtime.stopped.length).toBe(1);
  });

  test("by its time limit ends without a model that does not stop, and ignores its later text", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const { parts, clock } = testAgent(() => ({}));
    const chat: typeof parts.runtime.chat = async function* () {
      yield { kind: "text", text: "slow " };
      await promise;
      yield { kind: "text", text: "words" };
    };
    const agent = makeAgent({ ...parts, runtime: { ...parts.runtime, chat } });
    const texts: string[] = [];
    const begun = Promise.withResolvers<void>();
    const running = agent.run({
      runId: "r",
      sessionKey: HOOK,
      prompt: "go",
      tools: [],
      signal: NEVER,
      timeoutMs: 1000,
      onText: (text) => begun.resolve(void texts.push(text)),
    });
    await begun.promise;
    clock.advance(1000);
    clock.advance(5000);
    expect(await running).toMatchObject({ status: "timeout", error: "the turn took longer than 1 s" });
    resolve();
    await Bun.sleep(1);
    expect(texts).toEqual(["slow "]);
  });

  test("by cancellation stops the model, and does not start it if cancelled before", async () => {
    const { turn, runtime } = testAgent(() => ({ text: "slow words", until: new Promise(() => {}) }));
    const first = new AbortController();
    let begun = (): void => {};
    const started = new Promise<void>((resolve) => (begun = resolve));
    const running = turn({ signal: first.signal, onText: begun });
    await started;
    first.abort();
    expect(await running).toMatchObject({ status: "cancelled", text: "slow " });
    expect(await turn({ signal: AbortSignal.abort() })).toMatchObject({ status: "cancelled" });
    expect([runtime.stopped.length, runtime.requests.length]).toEqual([1, 1]);
  });
});

describe("tools", () => {
  test("are called until the model answers, and each result follows its call", async () => {
    const { turn, runtime, store } = testAgent((_, i) =>
      i === 0 ? { text: "let me see", thinking: "which?", calls: [call("current_time", {}, "c1")] } : { text: "noon" },
    );
    const result = await turn({ tools: ["current_time"] });
    expect(result).toMatchObject({ status: "ok", text: "noon", usage: { rounds: 2, toolCalls: 1 } });
    expect(runtime.requests[1]?.messages.slice(1)).toEqual([
      { role: "assistant", content: "let me see", thinking: "which?", tool_calls: [call("current_time", {}, "c1")] },
      { role: "tool", content: "Monday 2026-01-05 12:00:00 UTC", tool_name: "current_time", tool_call_id: "c1" },
    ]);
    expect((await store.read(() => historyOf(HOOK))).messages.map(({ message }) => message.role)).toEqual([
      "user",
      "assistant",
      "tool",
      "assistant",
    ]);
    expect(JSON.stringify(await store.read(() => historyOf(HOOK)))).not.toContain("which?");
  });

  test("are off by default, and a tool that is not allowed is not called", async () => {
    const { turn, runtime } = testAgent((_, i) => (i < 2 ? { calls: [call("session_history")] } : { text: "well" }));
    await turn({ tools: ["current_time"] });
    expect(runtime.requests[0]?.tools?.map((tool) => tool.function.name)).toEqual(["current_time"]);
    expect(runtime.requests[1]?.messages.at(-1)?.content).toBe(
      "error: there is no tool 'session_history'; there are: current_time",
    );
    await turn({});
    expect(runtime.requests.at(-1)?.tools).toBeUndefined();
  });

  test("are limited in rounds: the last request allows no call", async () => {
    const { turn, runtime } = testAgent(({ toolChoice }) =>
      toolChoice === "none" ? { text: "enough" } : { calls: [call("current_time")] },
    );
    expect(await turn({ tools: ["current_time"] })).toMatchObject({
      text: "enough",
      usage: { rounds: 8, toolCalls: 7 },
    });
    expect(runtime.requests.length).toBe(8);
  });

  test("end the turn if they are called without an offer, with an error if there is no text", async () => {
    const { turn, runtime } = testAgent((_, i) => ({ text: i === 9 ? "well" : "", calls: [call("current_time")] }));
    const failed = { status: "error", isTemporary: false };
    expect(await turn({ tools: ["current_time"] })).toMatchObject({
      ...failed,
      error: expect.stringContaining("called a tool instead of answering, after 8 rounds"),
    });
    expect(await turn({})).toMatchObject({
      ...failed,
      error: expect.stringContaining("called a tool instead of answering, and this turn has none"),
    });
    expect(await turn({})).toMatchObject({ status: "ok", text: "well" });
    expect(runtime.requests.length).toBe(10);
  });

  test("return no more than fits into the context", async () => {
    const asking = call("session_history", { limit: 50 });
    const { turn, runtime, store } = testAgent(
      (request) => (request.tools && request.messages.at(-1)?.role === "user" ? { calls: [asking] } : { text: "ok" }),
      { ctxLen: 600 },
    );
    for (let i = 0; i < 9; i++) await turn({ prompt: "x ".repeat(200) });
    expect(await turn({ tools: ["session_history"] })).toMatchObject({
      text: "ok",
      usage: { rounds: 2, toolCalls: 1 },
    });
    const { messages } = runtime.requests.at(-1)!;
    expect(tokensOf({ messages })).toBeLessThanOrEqual(600 - 75); // an eighth is reserved for the answer
    expect(messages.at(-1)?.content).toMatch(/<<<EXTERNAL_UNTRUSTED_CONTENT id="\w+">>>\n.*\n---\n\(cut\) …/);
    expect((await store.read(() => historyOf(HOOK))).messages.at(-2)?.message).toEqual(messages.at(-1)!);
  });

  test("have results left out that do not fit at all, and the model answers without them", async () => {
    const { turn, runtime } = testAgent(
      ({ tools, toolChoice }) =>
        tools && toolChoice !== "none" ? { calls: [call("session_history")] } : { text: "ok" },
      { ctxLen: 200 },
    );
    await turn({ prompt: "x ".repeat(120) });
    expect(await turn({ prompt: "y ".repeat(110), tools: ["session_history"] })).toMatchObject({
      status: "ok",
      text: "ok",
      usage: { rounds: 2, toolCalls: 1 },
    });
    const [asked, again] = runtime.requests.slice(-2);
    expect(again?.messages).toEqual(asked!.messages);
  });

  test("get an error if too many are called at once", async () => {
    const many = Array.from({ length: 10 }, () => call("current_time"));
    const { turn, runtime } = testAgent((_, i) => (i === 0 ? { calls: many } : { text: "ok" }));
    await turn({ tools: ["current_time"] });
    const results = runtime.requests[1]!.messages.filter(({ role }) => role === "tool");
    expect(results.map(({ content }) => content.startsWith("error: expected at most 8"))).toEqual([
      ...Array.from({ length: 8 }, () => false),
      true,
      true,
    ]);
  });
});

describe("storing a turn", () => {
  const question = { runId: "run-1", sessionKey: HOOK, prompt: "go", tools: [], signal: new AbortController().signal };

  test("consumes the events that the turn saw, and none that came later", async () => {
    const { agent, store, runtime } = testAgent(() => ({ text: "seen" }));
    const enqueue = (text: string) => store.write(() => enqueueEvent(event(text), { eventsMax: 9 }));
    await enqueue("one");
    await enqueue("two");
    const { record } = await agent.run(question);
    await enqueue("two");
    await enqueue("three");
    expect(runtime.requests[0]?.messages[0]?.content).toContain("one");
    await store.write(() => storeTurn({ ...question, record, isEphemeral: false, now: 1 }));
    const left = await store.read(() => waitingEvents({ sessionKey: HOOK, limit: 9 }));
    expect(left.map(({ text, count }) => [text[0]?.text, count])).toEqual([
      ["two", 1],
      ["three", 1],
    ]);
  });

  test("in a transaction that fails changes neither transcript nor events", async () => {
    const { agent, store } = testAgent(() => ({ text: "seen" }));
    await store.write(() => enqueueEvent(event("one"), { eventsMax: 9 }));
    const { record } = await agent.run(question);
    const failing = store.write(function* () {
      yield* storeTurn({ ...question, record, isEphemeral: false, now: 1 });
      throw new Error("crash between steps");
    });
    await expect(failing).rejects.toThrow("crash between steps");
    expect([
      (await store.read(() => historyOf(HOOK))).messages.length,
      (await store.read(() => waitingEvents({ sessionKey: HOOK, limit: 9 }))).length,
    ]).toEqual([0, 1]);
  });

  test("fails for a run that is stored already", async () => {
    const { agent, store } = testAgent(() => ({ text: "seen" }));
    const { record } = await agent.run(question);
    await store.write(() => storeTurn({ ...question, record, isEphemeral: false, now: 1 }));
    const again = store.write(() => storeTurn({ ...question, record, isEphemeral: false, now: 2 }));
    await expect(again).rejects.toThrow("run 'run-1' is in the");
    expect((await store.read(() => historyOf(HOOK))).messages.length).toBe(2);
  });
});

const event = (text: string) => ({ sessionKey: HOOK, text: external(text), isWrapped: false, source: "test", now: 1 });
