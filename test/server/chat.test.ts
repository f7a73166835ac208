import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { ChatRequest, InferenceEvent } from "../../src/runtime/requests/runtime.ts";
import { DONE, hello, play } from "./fakes.ts";
import { CREATED_AT, linesOf, makeHarness, type Harness } from "./harness.ts";

let harness: Harness;
beforeAll(async () => void (harness = await makeHarness()));
afterAll(() => harness.close());
beforeEach(() => {
  harness.runtime.script = hello;
  harness.runtime.requests.length = 0;
});

const MESSAGES = [{ role: "user", content: "hi" }];
const chat = (body: object) => harness.post("/api/chat", { model: "m", messages: MESSAGES, ...body });
const asked = () => harness.runtime.requests.at(-1) as ChatRequest;

describe("an answer", () => {
  test("streams one line of JSON per piece, statistics only on the last", async () => {
    const response = await chat({});
    expect(response.headers.get("content-type")).toBe("application/x-ndjson");
    const text = await response.text();
    expect(text.split("\n").slice(0, 2)).toEqual([
      `{"model":"m","created_at":"${CREATED_AT}","message":{"role":"assistant","content":"He"},"done":false}`,
      `{"model":"m","created_at":"${CREATED_AT}","message":{"role":"assistant","content":"llo"},"done":false}`,
    ]);
    expect(JSON.parse(text.split("\n")[2]!)).toMatchObject({
      message: { role: "assistant", content: "" },
      done: true,
      done_reason: "stop",
      total_duration: 5_000_000,
      eval_count: 2,
    });
  });

  test("gives one object without streaming", async () => {
    expect(await (await chat({ stream: false })).json()).toMatchObject({
      model: "m",
      created_at: CREATED_AT,
      message: { role: "assistant", content: "Hello" },
      done: true,
      done_reason: "stop",
      prompt_eval_count: 3,
    });
  });
});

describe("tool calls", () => {
  const call = (name: string, args: Record<string, unknown>): InferenceEvent => ({
    kind: "toolCall",
    call: { function: { name, arguments: args } },
  });
  const tools = [
    { type: "function", function: { name: "f", parameters: { type: "object", properties: { z: {}, a: {} } } } },
  ];

  test("come in separate chunks with an index and a name", async () => {
    harness.runtime.script = play([{ kind: "text", text: "Well" }, call("f", { z: 1, a: 2 }), call("g", {}), DONE]);
    const lines = await linesOf(await chat({ tools }));
    expect(lines[1]).toEqual({
      model: "m",
      created_at: CREATED_AT,
      message: {
        role: "assistant",
        content: "",
        tool_calls: [
          {
            id: expect.stringMatching(/^call_[a-z0-9]{8}$/),
            function: { index: 0, name: "f", arguments: { z: 1, a: 2 } },
          },
        ],
      },
      done: false,
    });
    expect(JSON.stringify(lines[1])).toContain('"arguments":{"z":1,"a":2}');
    expect(lines[2]).toMatchObject({ message: { tool_calls: [{ function: { index: 1, name: "g", arguments: {} } }] } });
    expect(lines[3]).toMatchObject({ message: { role: "assistant", content: "" }, done: true, done_reason: "stop" });
  });

  test("are all in one object without streaming, with empty content", async () => {
    harness.runtime.script = play([call("f", { a: 1 }), { kind: "text", text: "\n" }, call("g", {}), DONE]);
    const reply = (await (await chat({ tools, stream: false })).json()) as {
      message: { tool_calls: { function: object }[] };
    };
    expect(reply).toMatchObject({ message: { role: "assistant", content: "" }, done: true, done_reason: "stop" });
    const calls = reply.message.tool_calls.map((item) => item.function);
    expect(calls).toEqual([
      { index: 0, name: "f", arguments: { a: 1 } },
      { index: 1, name: "g", arguments: {} },
    ]);
  });

  test("keep the id from the runtime", async () => {
    harness.runtime.script = play([
      { kind: "toolCall", call: { id: "x1", function: { name: "f", arguments: {} } } },
      DONE,
    ]);
    const [first] = await linesOf(await chat({ tools }));
    expect(first).toMatchObject({ message: { tool_calls: [{ id: "x1" }] } });
  });
});

describe("every field of the request", () => {
  test("reaches the runtime unchanged", async () => {
    const messages = [
      { role: "SYSTEM", content: "Be kind." },
      { role: "user", content: "look", images: [btoa("px")] },
      {
        role: "assistant",
        content: null,
        thinking: "hm",
        tool_calls: [{ id: "c", function: { name: "f", arguments: { z: 1, a: 2 } } }],
      },
      { role: "tool", content: "-3 C", tool_name: "f", tool_call_id: "c", extra: true },
      { role: "X", content: "templates decide" },
    ];
    const tools = [
      { type: "function", function: { name: "f", description: "d", parameters: { type: "object", minimum: 1 } } },
    ];
    await (await chat({ messages, tools, options: { seed: 1 }, keep_alive: 5, format: "json" })).text();
    expect(asked()).toEqual({
      model: "m",
      messages: [
        { role: "system", content: "Be kind." },
        { role: "user", content: "look", images: [new Uint8Array(Buffer.from("px"))] },
        {
          role: "assistant",
          content: "",
          thinking: "hm",
          tool_calls: [{ id: "c", function: { name: "f", arguments: { z: 1, a: 2 } } }],
        },
        { role: "tool", content: "-3 C", tool_name: "f", tool_call_id: "c" },
        { role: "x", content: "templates decide" },
      ],
      tools,
      options: { seed: 1 },
      keepAliveMs: 5000,
      format: "json",
      signal: expect.any(AbortSignal),
    });
  });

  test("tools: an empty list counts as no tools", async () => {
    await (await chat({ tools: [] })).text();
    expect(asked().tools).toBeUndefined();
  });
});

describe("a request without messages", () => {
  test.each([
    [{}, "load"],
    [{ messages: [], stream: true }, "load"],
    [{ messages: null }, "load"],
    [{ messages: [], keep_alive: 0 }, "unload"],
  ])("%j gives one object with done_reason %s", async (body, reason) => {
    const response = await harness.post("/api/chat", { model: "m", ...body });
    expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(await response.text()).toBe(
      `{"model":"m","created_at":"${CREATED_AT}","message":{"role":"assistant","content":""},"done":true,"done_reason":"${reason}"}`,
    );
  });
});

describe("think", () => {
  test.each([[false], [null]])("%p is accepted by every model", async (think) => {
    expect((await chat({ think })).status).toBe(200);
  });
  test.each([[true], ["high"]])("%p is refused if the model cannot think", async (think) => {
    const response = await chat({ think });
    expect([response.status, await response.json()]).toEqual([400, { error: '"m" does not support thinking' }]);
  });
});

describe("tool_choice", () => {
  test.each<[unknown, unknown]>([
    [undefined, undefined],
    [null, undefined],
    ["none", "none"],
    ["auto", "auto"],
    ["required", "required"],
    [{ name: "f" }, { name: "f" }],
    [{ type: "function", function: { name: "f" } }, { name: "f" }],
  ])("%p reaches the runtime as %p", async (tool_choice, expected) => {
    await (await chat({ tool_choice })).text();
    expect(asked().toolChoice).toEqual(expected as never);
  });

  test.each([["any"], [3], [{}], [{ function: {} }], [[]]])("%p is refused", async (tool_choice) => {
    const response = await chat({ tool_choice });
    const { error } = (await response.json()) as { error: string };
    expect([response.status, error]).toEqual([400, expect.stringContaining(`got ${JSON.stringify(tool_choice)}`)]);
  });
});
