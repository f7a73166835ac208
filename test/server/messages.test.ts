/** `POST /v1/messages`, over a socket. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { AppError } from "../../src/base/errors.ts";
import type { ChatRequest, InferenceEvent } from "../../src/runtime/requests/runtime.ts";
import { eventually } from "../e2e/hearth.ts";
import { DONE, endless, hello, play } from "./fakes.ts";
import { makeHarness, type Harness } from "./harness.ts";
import { eventsOf } from "./sse-frames.ts";

let harness: Harness;
let url: string;
beforeAll(async () => {
  harness = await makeHarness();
  ({ url } = harness.listen());
});
afterAll(() => harness.close());
beforeEach(() => {
  harness.runtime.script = hello;
  harness.runtime.requests.length = 0;
});

const BASE = { model: "m", max_tokens: 64, messages: [{ role: "user", content: "hi there" }] };
const post = (body: object, path = "/v1/messages"): Promise<Response> =>
  fetch(url + path, { method: "POST", body: JSON.stringify({ ...BASE, ...body }) });
const asked = () => harness.runtime.requests.at(-1) as ChatRequest;
const call = (name: string, args: Record<string, unknown>): InferenceEvent => ({
  kind: "toolCall",
  call: { function: { name, arguments: args } },
});
const stop = (more: object): InferenceEvent => ({ ...DONE, ...more }) as InferenceEvent;
const TOOLS = [
  { name: "f", description: "d", input_schema: { type: "object", properties: { a: {} } } },
  { name: "g", input_schema: {} },
];

describe("a whole message", () => {
  test("has text, a stop reason and token counts", async () => {
    const response = await post({});
    expect(response.status).toBe(200);
    expect(response.headers.get("request-id")).toMatch(/^req_[0-9a-f]{24}$/);
    expect(await response.json()).toEqual({
      id: expect.stringMatching(/^msg_[0-9a-f]{24}$/),
      type: "message",
      role: "assistant",
      model: "m",
      content: [{ type: "text", text: "Hello" }],
      stop_reason: "end_turn",
      stop_sequence: null,
      usage: { input_tokens: 2, cache_creation_input_tokens: 0, cache_read_input_tokens: 1, output_tokens: 2 },
    });
  });

  test("puts thinking, text and calls in separate blocks, without the blanks between them", async () => {
    harness.runtime.script = play([
      { kind: "thinking", text: "hm" },
      { kind: "thinking", text: "m" },
      { kind: "text", text: "\n\n" },
      { kind: "text", text: "Well" },
      call("f", { z: 1, a: { b: "ü" } }),
      { kind: "text", text: "\n" },
      { kind: "toolCall", call: { id: "x1", function: { name: "g", arguments: {} } } },
      { kind: "text", text: "\n" },
      DONE,
    ]);
    expect(await (await post({ tools: TOOLS })).json()).toMatchObject({
      content: [
        { type: "thinking", thinking: "hmm", signature: expect.stringMatching(/^[A-Za-z0-9+/]{43}=$/) },
        { type: "text", text: "\n\nWell" },
        {
          type: "tool_use",
          id: expect.stringMatching(/^toolu_[0-9a-f]{24}$/),
          name: "f",
          input: { z: 1, a: { b: "ü" } },
        },
        { type: "tool_use", id: "x1", name: "g", input: {} },
      ],
      stop_reason: "tool_use",
    });
  });

  test("keeps blanks if the answer has nothing else", async () => {
    harness.runtime.script = play([{ kind: "text", text: " " }, { kind: "text", text: "\n" }, DONE]);
    expect(await (await post({})).json()).toMatchObject({ content: [{ type: "text", text: " \n" }] });
  });

  test("has no blocks if the answer is empty", async () => {
    harness.runtime.script = play([DONE]);
    expect(await (await post({})).json()).toMatchObject({ content: [], stop_reason: "end_turn" });
  });

  test.each([
    [stop({ reason: "length" }), "max_tokens", null],
    [stop({ stopSequence: "END" }), "stop_sequence", "END"],
    [stop({ stopSequence: "<|end|>" }), "end_turn", null], // a stop string of the model
    [stop({}), "end_turn", null],
  ])("%j stops with %s, %p", async (done, reason, sequence) => {
    harness.runtime.script = play([{ kind: "text", text: "a" }, done]);
    const body = await (await post({ stop_sequences: ["END", "FIN"] })).json();
    expect(body).toMatchObject({ stop_reason: reason, stop_sequence: sequence });
    expect(asked().options.stop).toEqual(["END", "FIN"]);
  });
});

describe("a stream", () => {
  test("opens, fills and closes each block, with token counts in the first and the last event", async () => {
    harness.runtime.script = play([
      { kind: "prompt", promptEvalCount: 7, promptCachedCount: 5, promptEvalNs: 0 },
      { kind: "thinking", text: "hm" },
      { kind: "text", text: "He" },
      { kind: "text", text: "llo" },
      call("f", { a: 1 }),
      DONE,
    ]);
    const response = await post({ stream: true, tools: TOOLS });
    expect(response.headers.get("content-type")).toStartWith("text/event-stream");
    expect(response.headers.get("request-id")).toMatch(/^req_/);
    const frames = await eventsOf(response);
    for (const { event, data } of frames) expect(data.type).toBe(event);
    const usage = { cache_creation_input_tokens: 0, cache_read_input_tokens: 0 };
    expect(frames.map(({ data }) => data)).toEqual([
      {
        type: "message_start",
        message: {
          id: expect.stringMatching(/^msg_/),
          type: "message",
          role: "assistant",
          model: "m",
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: { ...usage, input_tokens: 2, cache_read_input_tokens: 5, output_tokens: 0 },
        },
      },
      { type: "ping" },
      { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "", signature: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "hm" } },
      {
        type: "content_block_delta",
        index: 0,
        delta: { type: "signature_delta", signature: expect.stringMatching(/^[A-Za-z0-9+/]{43}=$/) },
      },
      { type: "content_block_stop", index: 0 },
      { type: "content_block_start", index: 1, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: "He" } },
      { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: "llo" } },
      { type: "content_block_stop", index: 1 },
      {
        type: "content_block_start",
        index: 2,
        content_block: { type: "tool_use", id: expect.stringMatching(/^toolu_/), name: "f", input: {} },
      },
      { type: "content_block_delta", index: 2, delta: { type: "input_json_delta", partial_json: '{"a":1}' } },
      { type: "content_block_stop", index: 2 },
      {
        type: "message_delta",
        delta: { stop_reason: "tool_use", stop_sequence: null },
        usage: { ...usage, input_tokens: 2, cache_read_input_tokens: 1, output_tokens: 2 },
      },
      { type: "message_stop" },
    ]);
  });

  test("has an error status if it fails before its first token", async () => {
    harness.runtime.script = async function* () {
      yield* [];
      throw new AppError("busy", "too many");
    };
    const response = await post({ stream: true });
    expect([response.status, await response.json()]).toEqual([
      503,
      {
        type: "error",
        error: { type: "overloaded_error", message: "too many" },
        request_id: response.headers.get("request-id"),
      },
    ]);
  });

  test("ends with an error event if it fails later", async () => {
    harness.runtime.script = async function* () {
      yield { kind: "text", text: "He" };
      throw new AppError("runner", "the model is gone");
    };
    const response = await post({ stream: true });
    const frames = await eventsOf(response);
    expect(frames.at(-1)).toEqual({
      event: "error",
      data: {
        type: "error",
        error: { type: "api_error", message: "the model is gone" },
        request_id: response.headers.get("request-id"),
      },
    });
    expect(frames.map(({ event }) => event)).not.toContain("message_stop");
  });

  test("stops the model if the client hangs up", async () => {
    harness.runtime.script = endless(5);
    const abort = new AbortController();
    const body = JSON.stringify({ ...BASE, stream: true });
    const response = await fetch(`${url}/v1/messages`, { method: "POST", body, signal: abort.signal });
    await response.body!.getReader().read();
    expect(harness.runtime.running()).toBe(1);
    abort.abort();
    expect(await eventually(() => harness.runtime.running() === 0)).toBe(true);
  });
});

describe("settings of the request", () => {
  test("reach the runtime under native names, and stay absent if they are missing", async () => {
    await post({ temperature: 0.5, top_p: 0.9, top_k: 5, metadata: { user_id: "u" }, service_tier: "auto" });
    expect(asked()).toEqual({
      model: "m",
      messages: [{ role: "user", content: "hi there" }],
      options: { num_predict: 64, temperature: 0.5, top_p: 0.9, top_k: 5 },
      signal: expect.any(AbortSignal),
    });
    await post({});
    expect(asked().options).toEqual({ num_predict: 64 });
  });

  test("output_format is accepted as the older form of output_config", async () => {
    const schema = { type: "object", properties: { a: { type: "string" } } };
    await post({ output_format: { type: "json_schema", schema } });
    expect(asked().format).toEqual(schema);
    const response = await post({ output_format: { type: "yaml" } });
    expect(await response.text()).toContain('output_format.type: expected \\"json_schema\\", got \\"yaml\\"');
  });

  test("tools and the schema of the answer reach the runtime", async () => {
    const schema = { type: "object", properties: { a: { type: "string" } } };
    await post({ tools: TOOLS, output_config: { format: { type: "json_schema", schema } } });
    expect(asked().format).toEqual(schema);
    expect(asked().tools).toEqual([
      { type: "function", function: { name: "f", description: "d", parameters: TOOLS[0]!.input_schema } },
      { type: "function", function: { name: "g", parameters: {} } },
    ]);
  });

  test.each([
    [{ type: "auto" }, "auto"],
    [{ type: "none" }, "none"],
    [{ type: "any" }, "required"],
    [{ type: "tool", name: "g" }, { name: "g" }],
  ])("tool_choice %j reaches the runtime as %j", async (tool_choice, wanted) => {
    await post({ tools: TOOLS, tool_choice });
    expect(asked().toolChoice).toEqual(wanted as ChatRequest["toolChoice"] & object);
  });

  test("web search is left out, and the log names it", async () => {
    const tools = [{ type: "web_search_20250305", name: "web_search" }, TOOLS[0]];
    expect((await post({ tools })).status).toBe(200);
    expect(asked().tools?.map((tool) => tool.function.name)).toEqual(["f"]);
    expect(harness.logs).toContainEqual(expect.objectContaining({ level: "warn", types: ["web_search_20250305"] }));
  });

  test("disable_parallel_tool_use keeps only one call", async () => {
    harness.runtime.script = play([call("f", {}), call("g", {}), DONE]);
    const tool_choice = { type: "auto", disable_parallel_tool_use: true };
    const body = (await (await post({ tools: TOOLS, tool_choice })).json()) as { content: { name: string }[] };
    expect(body.content.map(({ name }) => name)).toEqual(["f"]);
  });

  test.each([
    [{ thinking: { type: "enabled", budget_tokens: 1024 } }, undefined], // 'm' cannot think: a hint, not an order
    [{ thinking: { type: "disabled" } }, false],
    [{ output_config: { effort: "high" } }, undefined],
    [{}, undefined],
  ])("%j gives a model that cannot think the setting %p", async (body, think) => {
    expect((await post(body)).status).toBe(200);
    expect(asked().think).toBe(think as false);
  });
});

describe("count_tokens", () => {
  test("counts the prompt's tokens without running the model", async () => {
    const response = await post({ max_tokens: undefined, system: "be kind now" }, "/v1/messages/count_tokens");
    expect([response.status, await response.json()]).toEqual([200, { input_tokens: 5 }]);
    expect(harness.runtime.requests).toEqual([]);
  });
});

test.each(["/v1/messages", "/v1/messages/count_tokens"])(
  "%s: continuing a thread is 404, so that the SDK sends the whole conversation",
  async (path) => {
    expect((await post({ thread: { type: "create" } }, path)).status).toBe(200);
    const thread = { type: "continue", previous_message_id: "msg_1" };
    for (const messages of [BASE.messages, []]) {
      const response = await post({ thread, messages }, path);
      expect([response.status, await response.json()]).toEqual([
        404,
        {
          type: "error",
          error: {
            type: "not_found_error",
            message: "thread: expected all messages, got a thread to continue, and this server keeps no threads",
            details: { error_code: "thread_not_found" },
          },
          request_id: expect.any(String),
        },
      ]);
    }
  },
);

describe("invalid requests are refused", () => {
  const messages = (content: unknown, role = "user") => ({ messages: [{ role, content }] });
  test.each([
    [{ model: "" }, 400, "model is required"],
    [{ max_tokens: null }, 400, "max_tokens is required and must be positive"],
    [{ max_tokens: 0 }, 400, "max_tokens is required and must be positive"],
    [{ messages: [] }, 400, "messages is required"],
    [{ model: "nope" }, 404, "model 'nope' not found"],
    [{ messages: ["hi"] }, 400, 'messages.0: expected an object, got "hi"'],
    [messages("x", "tool"), 400, 'messages.0.role: expected "user", "assistant" or "system", got "tool"'],
    [messages(7), 400, "messages.0.content: expected an array, got 7"],
    [messages([{ type: "text" }]), 400, "messages.0.content.0.text: expected a string, got nothing"],
    [
      messages([{ type: "tool_use", name: "f" }]),
      400,
      "messages.0.content.0: tool_use block missing required 'id' field",
    ],
    [
      messages([{ type: "tool_use", id: "f" }]),
      400,
      "messages.0.content.0: tool_use block missing required 'name' field",
    ],
    [
      messages([{ type: "image" }]),
      400,
      "messages.0.content.0.source: invalid image source: expected an object of type base64, got none",
    ],
    [
      messages([{ type: "image", source: { type: "url", url: "http://x" } }]),
      400,
      "invalid image source type: url. Only base64 images are supported.",
    ],
    [
      messages([{ type: "document", source: { type: "base64", media_type: "application/pdf", data: "" } }]),
      400,
      'messages.0.content.0.source.type: expected "text" or "content": only documents that are text can be read, got "base64"',
    ],
    [
      messages([{ type: "hologram" }]),
      400,
      'messages.0.content.0.type: expected a block of text, image, tool_use, tool_result or thinking, got "hologram"',
    ],
    [
      { tools: [TOOLS[0], { type: "code_execution_20250825", name: "code_execution" }] },
      400,
      'tools.1.type: expected "custom" or another tool that the client runs, got "code_execution_20250825"',
    ],
    [{ tools: [{ name: "f" }] }, 400, "tools.0.input_schema: expected an object, got nothing"],
    [{ tools: [{ name: "", input_schema: {} }] }, 400, 'tools.0.name: expected a name, got ""'],
    [{ tools: "f" }, 400, 'tools: expected an array, got "f"'],
    [{ tool_choice: { type: "any" } }, 400, 'tool_choice: expected tools with "any", got none'],
    [
      { tools: [{ type: "web_search_20250305", name: "web_search" }], tool_choice: { type: "any" } },
      400,
      'tool_choice: expected tools with "any", got none',
    ],
    [
      { tools: TOOLS, tool_choice: { type: "tool", name: "h" } },
      400,
      'tool_choice.name: expected the name of one of the tools, got "h"',
    ],
    [
      { tools: TOOLS, tool_choice: { type: "must" } },
      400,
      'tool_choice.type: expected "auto", "any", "tool" or "none", got "must"',
    ],
  ])("%j: %d %s", async (body, status, message) => {
    const response = await post(body);
    expect([response.status, await response.json()]).toEqual([
      status,
      {
        type: "error",
        error: { type: status === 404 ? "not_found_error" : "invalid_request_error", message },
        request_id: response.headers.get("request-id"),
      },
    ]);
  });

  test("a body in another format than JSON", async () => {
    const response = await fetch(`${url}/v1/messages`, { method: "POST", body: "{" });
    expect([response.status, await response.json()]).toMatchObject([400, { error: { type: "invalid_request_error" } }]);
  });
});

test("a key may be in x-api-key", async () => {
  const guarded = await makeHarness({ apiKeys: ["alpha"] });
  const ask = (headers: Record<string, string>) => guarded.call("POST", "/v1/messages", BASE, headers);
  expect((await ask({ "x-api-key": "alpha" })).status).toBe(200);
  const refused = await ask({ "x-api-key": "beta" });
  expect([refused.status, refused.headers.get("request-id")]).toEqual([401, expect.stringMatching(/^req_/)]);
  expect(await refused.json()).toMatchObject({ error: { type: "authentication_error" } });
  await guarded.close();
});
