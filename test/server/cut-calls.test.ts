/** A tool call cut off by the end of the answer: each API's reply, and its own client's reading of it. */
import Anthropic from "@anthropic-ai/sdk";
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import OpenAI from "openai";
import type { InferenceEvent } from "../../src/runtime/requests/runtime.ts";
import { DONE, play } from "./fakes.ts";
import { linesOf, makeHarness, type Harness } from "./harness.ts";

const TEXT = '{"name": "save", "arguments": {"n": 3, "note": "Once upon';
const ARGUMENTS = '{"n":3,"note":"Once upon';
const cutCall = (name: string, args: string): InferenceEvent => ({
  kind: "cutCall",
  call: { function: { name, arguments: args }, text: TEXT },
});
const whole: InferenceEvent = { kind: "toolCall", call: { function: { name: "save", arguments: { n: 1 } } } };
const length: InferenceEvent = { ...DONE, reason: "length" };

let harness: Harness;
let openai: OpenAI;
let anthropic: Anthropic;
let url: string;
beforeAll(async () => {
  harness = await makeHarness();
  ({ url } = harness.listen());
  openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });
  anthropic = new Anthropic({ baseURL: url, apiKey: "none", maxRetries: 0 });
});
afterAll(() => harness.close());
beforeEach(() => {
  harness.runtime.script = play([cutCall("save", ARGUMENTS), length]);
});

const messages = [{ role: "user" as const, content: "Save a story." }];
const parameters = { type: "object" as const, properties: { n: {}, note: {} } };
const native = { model: "m", messages, tools: [{ type: "function", function: { name: "save", parameters } }] };
const chat = {
  model: "m",
  messages,
  tools: [
    { type: "function" as const, function: { name: "save", parameters } },
    { type: "custom" as const, custom: { name: "run" } },
  ],
};
const respond = {
  model: "m",
  input: "Save a story.",
  tools: [
    { type: "function" as const, name: "save", parameters, strict: false },
    { type: "custom" as const, name: "run" },
  ],
};
const message = { model: "m", max_tokens: 9, messages, tools: [{ name: "save", input_schema: parameters }] };

test("a chat completion has the arguments up to the cut, whole and streamed", async () => {
  const call = { id: expect.any(String), index: 0, type: "function", function: { name: "save", arguments: ARGUMENTS } };
  const [choice] = (await openai.chat.completions.create(chat)).choices;
  expect(choice).toMatchObject({ finish_reason: "length", message: { content: "", tool_calls: [call] } });

  let streamed = "";
  let reason: string | null | undefined;
  for await (const chunk of await openai.chat.completions.create({ ...chat, stream: true })) {
    streamed += chunk.choices[0]?.delta.tool_calls?.[0]?.function?.arguments ?? "";
    reason = chunk.choices[0]?.finish_reason;
  }
  expect([streamed, reason]).toEqual([ARGUMENTS, "length"]);
});

test("a cut custom tool call has its text up to the cut", async () => {
  harness.runtime.script = play([cutCall("run", '{"input":"print(1'), length]);
  const [choice] = (await openai.chat.completions.create(chat)).choices;
  expect(choice?.message.tool_calls).toMatchObject([{ type: "custom", custom: { name: "run", input: "print(1" } }]);
  const { output } = await openai.responses.create(respond);
  expect(output).toMatchObject([{ type: "custom_tool_call", status: "incomplete", input: "print(1" }]);
});

test("a response has a cut call as an incomplete item, whole and streamed", async () => {
  const item = { type: "function_call", status: "incomplete", name: "save", arguments: ARGUMENTS };
  const response = await openai.responses.create(respond);
  expect(response).toMatchObject({ status: "incomplete", incomplete_details: { reason: "max_output_tokens" } });
  expect(response.output).toMatchObject([item]);

  const types: string[] = [];
  for await (const event of await openai.responses.create({ ...respond, stream: true })) {
    types.push(event.type);
    if (event.type === "response.output_item.done") expect(event.item).toMatchObject(item);
    if (event.type === "response.incomplete") expect(event.response.output).toMatchObject([item]);
  }
  expect(types.slice(-2)).toEqual(["response.output_item.done", "response.incomplete"]);
});

test("a message has a cut call as a block with the input up to the cut, whole and streamed", async () => {
  const block = { type: "tool_use", id: expect.any(String), name: "save" };
  const reply = await anthropic.messages.create(message);
  expect(reply.stop_reason).toBe("max_tokens");
  expect(reply.content).toEqual([{ ...block, input: { n: 3, note: "Once upon" } } as never]);

  let json = "";
  const stream = anthropic.messages.stream(message).on("inputJson", (delta) => (json += delta));
  const streamed = await stream.finalMessage();
  expect([json, streamed.stop_reason]).toEqual([ARGUMENTS, "max_tokens"]);
  expect(streamed.content).toMatchObject([block as never]);
});

test("a message stops with max_tokens if its second call is cut, also before the arguments", async () => {
  harness.runtime.script = play([whole, cutCall("save", ""), length]);
  const reply = await anthropic.messages.create(message);
  expect(reply.stop_reason).toBe("max_tokens");
  expect(reply.content).toMatchObject([{ input: { n: 1 } }, { type: "tool_use", input: {} }]);
  const streamed = await anthropic.messages.stream(message).finalMessage();
  expect(streamed.content).toHaveLength(2);
});

test("a native answer has a cut call as text, since arguments must be an object there", async () => {
  const response = await harness.post("/api/chat", { ...native, stream: false });
  expect(await response.json()).toMatchObject({ done_reason: "length", message: { content: TEXT } });
  const [first, last] = await linesOf(await harness.post("/api/chat", native));
  expect([first, last]).toMatchObject([{ message: { content: TEXT } }, { done: true, done_reason: "length" }]);
});
