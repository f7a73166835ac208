/**
 * Custom tools of both OpenAI routes: the model sees a function with one text, the client sees calls with a text as
 * input.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { ChatRequest } from "../../../src/runtime/requests/runtime.ts";
import { DONE, play } from "../fakes.ts";
import { framesOf, makeHarness, type Harness } from "../harness.ts";
import { checkStream, ResponseShape } from "../response-shapes.ts";
import { eventsOf } from "../sse-frames.ts";

let harness: Harness;
beforeAll(async () => {
  harness = await makeHarness();
});
afterAll(() => harness.close());

const INPUT = 'Read "note"\n\t雪 ';
const call = (name: string, args: Record<string, unknown>) =>
  ({ kind: "toolCall", call: { id: "call_1", function: { name, arguments: args } } }) as const;
const asked = () => harness.runtime.requests.at(-1) as ChatRequest;
const fn = (name: string, input: object, description?: string) => ({
  type: "function",
  function: {
    name,
    ...(description === undefined ? {} : { description }),
    parameters: { type: "object", properties: { input }, required: ["input"] },
  },
});

const LARK = { syntax: "lark", definition: "start: WORD" };
const TOLD = "Write\n\nThe input follows this grammar (lark):\nstart: WORD";
const REGEX = { syntax: "regex", definition: "a|b" };

test("chat completions: custom tools, a choice, history and calls", async () => {
  harness.runtime.script = play([
    call("note", { input: INPUT }),
    call("f", { a: 1 }),
    call("note", { other: 1 }),
    DONE,
  ]);
  const custom = (name: string, more: object) => ({ type: "custom", custom: { name, ...more } });
  const body = {
    model: "m",
    messages: [
      { role: "user", content: "hi" },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c", type: "custom", custom: { name: "note", input: INPUT } }],
      },
      { role: "tool", tool_call_id: "c", content: "ok" },
    ],
    tools: [
      custom("note", { description: "Write", format: { type: "grammar", grammar: LARK } }),
      custom("pick", { format: { type: "grammar", grammar: REGEX } }),
      custom("free", { format: { type: "text" } }),
      { type: "function", function: { name: "f" } },
    ],
    tool_choice: custom("note", {}),
  };
  const whole: any = await (await harness.post("/v1/chat/completions", body)).json();
  expect(asked().toolChoice).toEqual({ name: "note" });
  expect<unknown>(asked().tools?.slice(0, 3)).toEqual([
    fn("note", { type: "string" }, TOLD),
    fn("pick", { type: "string", pattern: "^(?:a|b)$" }),
    fn("free", { type: "string" }),
  ]);
  expect(asked().messages.slice(1)).toMatchObject([
    { tool_calls: [{ id: "c", function: { name: "note", arguments: { input: INPUT } } }] },
    { role: "tool", tool_name: "note" },
  ]);
  const calls = [
    { id: "call_1", index: 0, type: "custom", custom: { name: "note", input: INPUT } },
    { id: "call_1", index: 1, type: "function", function: { name: "f", arguments: '{"a":1}' } },
    { id: "call_1", index: 2, type: "custom", custom: { name: "note", input: '{"other":1}' } },
  ];
  expect(whole.choices[0].message.tool_calls).toEqual(calls);
  const frames: any[] = await framesOf(await harness.post("/v1/chat/completions", { ...body, stream: true }));
  expect(frames.flatMap((frame) => frame.choices?.[0]?.delta.tool_calls ?? [])).toEqual(calls);
});

test("responses: custom tools, also in a namespace, history and calls", async () => {
  harness.runtime.script = play([call("note", { input: INPUT }), call("crm.find", { input: "x" }), DONE]);
  const body = {
    model: "m",
    input: [
      { role: "user", content: "hi" },
      { type: "custom_tool_call", call_id: "c", namespace: "crm", name: "find", input: INPUT },
      { type: "custom_tool_call_output", call_id: "c", output: [{ type: "input_text", text: "ok" }] },
    ],
    tools: [
      { type: "custom", name: "note", description: "Write", format: { type: "grammar", ...LARK } },
      { type: "namespace", name: "crm", tools: [{ type: "custom", name: "find", format: { type: "text" } }] },
    ],
    tool_choice: { type: "custom", name: "note" },
  };
  const whole = ResponseShape.parse(await (await harness.post("/v1/responses", body)).json());
  expect(asked().toolChoice).toEqual({ name: "note" });
  expect<unknown>(asked().tools).toEqual([fn("note", { type: "string" }, TOLD), fn("crm.find", { type: "string" })]);
  expect(asked().messages.slice(1)).toMatchObject([
    { tool_calls: [{ id: "c", function: { name: "crm.find", arguments: { input: INPUT } } }] },
    { role: "tool", tool_name: "crm.find", content: "ok" },
  ]);
  const calls = [
    { type: "custom_tool_call", status: "completed", call_id: "call_1", name: "note", input: INPUT },
    { type: "custom_tool_call", call_id: "call_1", namespace: "crm", name: "find", input: "x" },
  ];
  expect(whole.output).toMatchObject(calls);
  const streamed = checkStream(await eventsOf(await harness.post("/v1/responses", { ...body, stream: true })));
  expect(streamed.output).toMatchObject(calls);
});

test.each([
  ["/v1/chat/completions", { tools: [{ type: "custom" }] }, "tools[0].custom: expected an object, got nothing"],
  ["/v1/chat/completions", { tools: [{ type: "custom", custom: {} }] }, "tools[0].custom.name: expected a string"],
  ["/v1/responses", { tools: [{ type: "custom", name: "" }] }, 'tools.0.name: expected a name, got ""'],
  ["/v1/responses", { tools: [{ type: "custom" }] }, "tools.0.name: expected a string, got nothing"],
  [
    "/v1/responses",
    { tools: [{ type: "custom", name: "n", format: { type: "grammar", syntax: "lark" } }] },
    "tools.0.format.definition: expected a string, got nothing",
  ],
  [
    "/v1/responses",
    { input: [{ type: "custom_tool_call", call_id: "c", name: "n" }] },
    "input.0.input: expected a string",
  ],
])("%s refuses %j", async (path, fields, message) => {
  const response = await harness.post(path, {
    model: "m",
    input: "hi",
    messages: [{ role: "user", content: "hi" }],
    ...fields,
  });
  const { error } = (await response.json()) as { error: { message: string } };
  expect([response.status, error.message]).toEqual([400, expect.stringContaining(message)]);
});
