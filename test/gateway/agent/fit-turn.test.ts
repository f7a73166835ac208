import { describe, expect, test } from "bun:test";
import type { Store } from "../../../src/gateway/database/store.ts";
import fc from "fast-check";
import { enqueueEvent, waitingEvents } from "../../../src/gateway/agent/events.ts";
import { historyOf, listEntries } from "../../../src/gateway/agent/sessions.ts";
import { external } from "../../../src/gateway/agent/boundary/tainted-text.ts";
import type { ChatRequest, Message } from "../../../src/runtime/requests/runtime.ts";
import { HOOK, settingsOf, testAgent } from "./parts.ts";
import { tokensOf, type ScriptedAnswer } from "./scripted-runtime.ts";
import { AppError } from "../../../src/base/errors.ts";

const isSummary = ({ messages }: ChatRequest): boolean => messages[0]!.content.startsWith("Summarise the conversation");
const wordy = (name: string, count: number): string => Array.from({ length: count }, (_, i) => `${name}${i}`).join(" ");
/** Answers turns with this many words, and summaries with `summary`. */
const script =
  (summary: ScriptedAnswer, words = 10) =>
  (request: ChatRequest, i: number): ScriptedAnswer =>
    isSummary(request) ? summary : { text: wordy(`a${i}-`, words) };
const turnsOf = (requests: readonly ChatRequest[]) => requests.filter((request) => !isSummary(request));

describe("a conversation that outgrows the context", () => {
  test("is compacted: a summary inside the boundary replaces the oldest exchanges", async () => {
    const { turn, runtime, store } = testAgent(script({ text: "They spoke of q0." }), { ctxLen: 300 });
    for (let i = 0; i < 9; i++) {
      expect((await turn({ prompt: wordy(`q${i}-`, 10) })).status).toBe("ok");
    }
    const summaries = runtime.requests.filter(isSummary);
    expect(summaries.length).toBeGreaterThan(0);
    expect(summaries[0]?.messages[1]?.content).toMatch(/user: q\d-0 q\d-1 .*\nassistant: a/s);
    expect(summaries[0]).toMatchObject({ think: false, options: { num_predict: 37 } });
    for (const request of turnsOf(runtime.requests)) expect(tokensOf(request)).toBeLessThanOrEqual(300 * 0.7);
    const first = turnsOf(runtime.requests).at(-1)!.messages[0]!;
    expect(first.content).toMatch(/^\[\d+ earlier messages of this conversation no longer fit\. A summary of them:\]/);
    expect(first.content).toMatch(/<<<EXTERNAL_UNTRUSTED_CONTENT id="\w+">>>They spoke of q0\.<<<END_/);
    const entries = await store.read(() => listEntries({ sessionKey: HOOK, limit: 100 }));
    expect(entries.filter(({ body }) => body.kind === "message").length).toBe(18); // nothing left the transcript
    const { compaction, messages } = await store.read(() => historyOf(HOOK));
    expect(compaction!.droppedCount + messages.length).toBe(18);
  });

  test.each([
    ["fails", { error: new AppError("runner", "the model died") }],
    ["is empty", { text: " \n" }],
    ["is too long itself", { text: wordy("s", 500) }],
  ] as const)("tells the model how many messages are missing if the summary %s", async (_, summary) => {
    const { turn, runtime, store } = testAgent(script(summary), { ctxLen: 250 });
    for (let i = 0; i < 9; i++) expect((await turn({ prompt: wordy(`q${i}-`, 10) })).status).toBe("ok");
    const { compaction } = await store.read(() => historyOf(HOOK));
    expect(compaction?.summary).toBeUndefined();
    expect(turnsOf(runtime.requests).at(-1)?.messages[0]?.content).toStartWith(
      `[${compaction?.droppedCount} earlier messages of this conversation no longer fit and are not shown.]\n\nq`,
    );
  });

  test("carries an earlier summary into the next one", async () => {
    const { turn, runtime, store } = testAgent(script({ text: "Earlier matters." }), { ctxLen: 300 });
    for (let i = 0; i < 20; i++) await turn({ prompt: wordy(`q${i}-`, 10) });
    const summaries = runtime.requests.filter(isSummary);
    expect(summaries.length).toBeGreaterThan(1);
    expect(summaries[1]?.messages[1]?.content).toContain("Summary of what came before: Earlier matters.");
    const { compaction, messages } = await store.read(() => historyOf(HOOK));
    expect(compaction!.droppedCount + messages.length).toBe(40);
  });

  test("carries an earlier summary whole, however long the later messages are", async () => {
    const { turn, runtime } = testAgent(script({ text: "Earlier matters." }, 0), { ctxLen: 300 });
    for (const words of [150, 100, 100]) await turn({ prompt: wordy("question", words) });
    const summaries = runtime.requests.filter(isSummary);
    expect(summaries.length).toBe(2);
    expect(summaries[1]?.messages[1]?.content).toMatch(
      /Summary of what came before: Earlier matters\.\n\n….*question99/s,
    );
  });

  test("keeps the earlier summary if the model's new one is empty", async () => {
    let made = 0;
    const { turn, runtime, store } = testAgent(
      (request) => ({ text: isSummary(request) && ++made === 1 ? "Earlier matters." : "" }),
      { ctxLen: 300 },
    );
    for (const words of [150, 100, 100]) await turn({ prompt: wordy("q", words) });
    expect(made).toBe(2);
    expect(turnsOf(runtime.requests).at(-1)?.messages[0]?.content).toContain("Earlier matters.");
    expect((await store.read(() => historyOf(HOOK))).compaction?.summary).toBe("Earlier matters.");
  });

  test("is summarized from its end if its text has unusually many tokens, and the instruction stays whole", async () => {
    const { turn, runtime } = testAgent(script({ text: "Letters." }, 0), { ctxLen: 300 });
    for (const words of [195, 60]) await turn({ prompt: "a ".repeat(words) });
    const [summary] = runtime.requests.filter(isSummary);
    expect(tokensOf(summary!)).toBeLessThanOrEqual(300 - 37);
    expect(summary).toMatchObject({ truncate: false, shift: false });
    expect(summary?.messages[1]?.content).toMatch(/What stands between [^]* a a a [^]*Current time: /);
    expect(turnsOf(runtime.requests).at(-1)?.messages[0]?.content).toContain("Letters.");
  });

  test("has its tokens counted at most three times per turn, however long it is", async () => {
    const { turn, runtime, store } = testAgent(script({ text: "" }), { ctxLen: 9000 });
    for (let i = 0; i < 400; i++) expect((await turn({ prompt: wordy(`q${i}-`, 10) })).status).toBe("ok");
    const [before] = turnsOf(runtime.requests).filter(({ messages }) => messages[0]!.content.startsWith("["));
    expect(before?.messages.length).toBeGreaterThan(250); // some 0.6 of the budget stay
    const perTurn = Map.groupBy(runtime.counted, ({ messages }) => messages.at(-1)!.content);
    expect(Math.max(...[...perTurn.values()].map(({ length }) => length))).toBeLessThanOrEqual(3);
    expect((await store.read(() => historyOf(HOOK))).compaction).toBeDefined();
  });

  test("ends a turn with the error of a bug in the summary", async () => {
    const { turn } = testAgent(script({ error: new TypeError("undefined is not") }), { ctxLen: 250 });
    const errors: (string | undefined)[] = [];
    for (let i = 0; i < 9; i++) errors.push((await turn({ prompt: wordy(`q${i}-`, 10) })).error);
    expect(errors).toContain("undefined is not");
  });

  test("is not compacted if the turn is cancelled during the summary", async () => {
    const gone = new AbortController();
    const { turn, store } = testAgent(
      (request) => {
        if (!isSummary(request)) return { text: wordy("a", 10) };
        gone.abort();
        return { text: "never", until: new Promise(() => {}) };
      },
      { ctxLen: 250 },
    );
    let status = "ok";
    for (let i = 0; i < 9 && status === "ok"; i++) {
      ({ status } = await turn({ prompt: wordy(`q${i}-`, 10), signal: gone.signal }));
    }
    expect(status).toBe("cancelled");
    expect((await store.read(() => historyOf(HOOK))).compaction).toBeUndefined();
  });

  test("always shows a tool's result after its call, and begins with a user's message", async () => {
    const step = fc.record({ words: fc.integer({ min: 1, max: 60 }), calls: fc.integer({ min: 0, max: 3 }) });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
        let at = 0;
        let asked = 0;
        const call = { id: "c", function: { name: "current_time", arguments: {} } };
        const { store, turn, runtime } = testAgent(
          (request) => {
            if (isSummary(request)) return { text: "before" };
            return asked++ < steps[at]!.calls ? { calls: [call] } : { text: "ok" };
          },
          { ctxLen: 400 },
        );
        for (at = 0; at < steps.length; at++) {
          asked = 0;
          await turn({ prompt: wordy("q", steps[at]!.words), tools: ["current_time"] });
        }
        for (const { messages } of turnsOf(runtime.requests)) checkPairs(messages);
        await store.close();
      }),
      { numRuns: 40 },
    );
  });
});

function checkPairs(messages: readonly Message[]): void {
  expect(messages[0]?.role).toBe("user");
  messages.forEach((message, i) => {
    if (message.role !== "tool") return;
    const before = messages[i - 1]!;
    expect(before.role === "tool" || (before.tool_calls?.length ?? 0) > 0).toBe(true);
  });
  for (const [i, message] of messages.entries()) {
    if (message.tool_calls) expect(messages[i + 1]?.role).toBe("tool");
  }
}

describe("a prompt with waiting events", () => {
  const put = (store: Store, text: string) =>
    store.write(() =>
      enqueueEvent(
        { sessionKey: HOOK, text: external(text), isWrapped: false, source: "s", now: 1 },
        { eventsMax: 1000 },
      ),
    );
  const left = async (store: Store) =>
    (await store.read(() => waitingEvents({ sessionKey: HOOK, limit: 1000 }))).map(
      ({ text }) => text[0]!.text.split(" ")[0],
    );

  test("shows fewer events if not all fit, and the others wait", async () => {
    const { turn, store, runtime } = testAgent(() => ({ text: "ok" }), { ctxLen: 200 });
    for (let i = 0; i < 8; i++) await put(store, `e${i} ${wordy("w", 20)}`);
    expect((await turn({})).status).toBe("ok");
    expect(runtime.requests[0]?.messages[0]?.content).toContain("more events wait for the next turn");
    expect(await left(store)).toEqual(["e4", "e5", "e6", "e7"]);
    await turn({});
    await turn({});
    expect(await left(store)).toEqual([]);
  });

  test("shows a part of an event that alone would not fit", async () => {
    const { turn, store, runtime } = testAgent(() => ({ text: "ok" }), { ctxLen: 200 });
    await put(store, wordy("w", 1000));
    expect((await turn({})).status).toBe("ok");
    expect(runtime.requests[0]?.messages[0]?.content).toMatch(/… \(\d+ characters are missing\)/);
    expect(await left(store)).toEqual([]);
  });

  test("is refused if the prompt itself is too long", async () => {
    const { turn, store, runtime } = testAgent(() => ({ text: "ok" }), { ctxLen: 200 });
    await put(store, "a");
    expect(await turn({ prompt: wordy("w", 150) })).toMatchObject({
      status: "error",
      isTemporary: false,
      error: "the prompt has 157 tokens, and the context of 'hearth:latest' 200: expected 64 left for the answer",
    });
    expect([runtime.requests.length, await left(store)]).toEqual([0, ["a"]]);
  });

  test("is limited to the configured share of the context", async () => {
    const settings = settingsOf({}, { compactAt: 0.3 });
    const { turn, runtime } = testAgent(script({ text: "" }), { ctxLen: 300, settings });
    for (let i = 0; i < 6; i++) await turn({ prompt: wordy(`q${i}-`, 10) });
    for (const request of turnsOf(runtime.requests)) expect(tokensOf(request)).toBeLessThanOrEqual(90);
  });
});
