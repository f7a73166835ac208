/** `POST /v1/responses`, over a socket. Every stream is checked against the documented shapes. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { AppError } from "../../src/base/errors.ts";
import type { ChatRequest, InferenceEvent } from "../../src/runtime/requests/runtime.ts";
import { eventually } from "../e2e/hearth.ts";
import { DONE, endless, hello, play } from "./fakes.ts";
import { makeHarness, NOW, type Harness } from "./harness.ts";
import { checkStream, ResponseShape } from "./response-shapes.ts";
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

const post = (body: object): Promise<Response> =>
  fetch(`${url}/v1/responses`, { method: "POST", body: JSON.stringify({ model: "m", input: "hi", ...body }) });
const whole = async (body: object) => ResponseShape.parse(await (await post(body)).json());
const stream = async (body: object) => eventsOf(await post({ ...body, stream: true }));
const asked = () => harness.runtime.requests.at(-1) as ChatRequest;
const call = (name: string, args: Record<string, unknown>, id?: string): InferenceEvent => ({
  kind: "toolCall",
  call: { ...(id ? { id } : {}), function: { name, arguments: args } },
});
const fn = (name: string, more: object = {}) => ({ type: "function", name, parameters: { type: "object" }, ...more });
const SECONDS = Math.floor(NOW.getTime() / 1000);

const MIXED: InferenceEvent[] = [
  { kind: "thinking", text: "h" },
  { kind: "thinking", text: "m" },
  { kind: "text", text: "\n\n" },
  { kind: "text", text: "Well" },
  { kind: "text", text: ", " },
  call("f", { z: 1, a: { b: "ü" } }),
  { kind: "text", text: "\n" },
  call("g", {}, "x1"),
  DONE,
];
const MIXED_OUTPUT = [
  { type: "reasoning", status: "completed", summary: [{ type: "summary_text", text: "hm" }], encrypted_content: null },
  { type: "message", status: "completed", content: [{ type: "output_text", text: "\n\nWell, " }] },
  {
    type: "function_call",
    status: "completed",
    name: "f",
    arguments: '{"z":1,"a":{"b":"ü"}}',
    call_id: expect.stringMatching(/^call_/),
  },
  { type: "function_call", status: "completed", name: "g", arguments: "{}", call_id: "x1" },
];

describe("a whole response", () => {
  test("has the settings of the request, the output and the usage", async () => {
    const response = await whole({ instructions: "Be kind.", temperature: 0.25, metadata: { a: "b" }, user: "u" });
    expect(response).toMatchObject({
      created_at: SECONDS,
      completed_at: SECONDS,
      status: "completed",
      model: "m",
      instructions: "Be kind.",
      output: [{ type: "message", role: "assistant", content: [{ text: "Hello" }] }],
      temperature: 0.25,
      top_p: 0.9,
      truncation: "auto",
      metadata: { a: "b" },
      user: "u",
      usage: { input_tokens: 3, input_tokens_details: { cached_tokens: 1 }, output_tokens: 2, total_tokens: 5 },
    });
  });

  test("takes the native settings that other routes take", async () => {
    await whole({ num_ctx: 512, keep_alive: "1h", seed: 2 ** 60, options: { top_k: 3 }, top_p: 0.5, shift: false });
    const options = { num_ctx: 512, seed: 2 ** 60, top_k: 3, top_p: 0.5 };
    expect(asked()).toMatchObject({ options, keepAliveMs: 3_600_000, shift: false });
  });

  test("items of recent responses can be referenced by id", async () => {
    harness.runtime.script = play(MIXED);
    const said = await whole({ store: true });
    const named = said.output.slice(0, 2).map(({ id }) => ({ type: "item_reference", id }));
    const [call] = said.output.filter(({ type }) => type === "function_call");
    const result = { type: "function_call_output", call_id: "x1", output: "done" };
    await whole({ input: [...named, said.output[3], { type: "item_reference", id: call!.id }, result] });
    expect(asked().messages).toMatchObject([
      {
        role: "assistant",
        thinking: "hm",
        content: "\n\nWell, ",
        tool_calls: [{ function: { name: "g" } }, { function: { name: "f", arguments: { z: 1, a: { b: "ü" } } } }],
      },
      { role: "tool", tool_name: "g", content: "done" },
    ]);
    const last = (await stream({})).at(-1)!.data;
    expect((await post({ input: [{ type: "item_reference", id: last.response.output[0].id }] })).status).toBe(200);
    const unkept = await whole({ store: false });
    expect((await post({ input: [{ type: "item_reference", id: unkept.output[0]!.id }] })).status).toBe(400);
  });

  test("reports the model's settings if the request has none", async () => {
    expect((await whole({})).temperature).toBe(0.7);
  });

  test("has reasoning, text and calls in order", async () => {
    harness.runtime.script = play(MIXED);
    const response = await whole({ tools: [fn("f"), fn("g")] });
    expect(response).toMatchObject({ output: MIXED_OUTPUT, usage: { output_tokens_details: { reasoning_tokens: 2 } } });
  });

  test("is incomplete if the answer was cut off", async () => {
    harness.runtime.script = play([{ kind: "text", text: "He" }, { ...DONE, reason: "length" } as InferenceEvent]);
    expect(await whole({ max_output_tokens: 1 })).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
      completed_at: null,
      max_output_tokens: 1,
      output: [{ status: "incomplete" }],
    });
    expect(asked().options.num_predict).toBe(1);
  });

  test("has encrypted reasoning to send back, if the request includes it", async () => {
    harness.runtime.script = play(MIXED);
    const { output } = await whole({ include: ["reasoning.encrypted_content"] });
    expect(output[0]).toMatchObject({ encrypted_content: "hm" });
  });
});

describe("a stream", () => {
  test("adds, fills and ends each item in order", async () => {
    harness.runtime.script = play(MIXED);
    const frames = await stream({ tools: [fn("f"), fn("g")] });
    expect(checkStream(frames)).toMatchObject({ status: "completed", output: MIXED_OUTPUT });
    const item = (at: number, ...middle: string[]) =>
      ["output_item.added", ...middle, "output_item.done"].map((name) => [`response.${name}`, at]);
    const call = ["function_call_arguments.delta", "function_call_arguments.done"];
    const summary = "reasoning_summary";
    expect(frames.map(({ data }) => [data.type, data.output_index])).toEqual([
      ["response.created", undefined],
      ["response.in_progress", undefined],
      ...item(
        0,
        `${summary}_part.added`,
        `${summary}_text.delta`,
        `${summary}_text.delta`,
        `${summary}_text.done`,
        `${summary}_part.done`,
      ),
      ...item(
        1,
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
      ),
      ...item(2, ...call),
      ...item(3, ...call),
      ["response.completed", undefined],
    ]);
    const deltas = frames.filter(({ event }) => event === "response.output_text.delta").map(({ data }) => data.delta);
    expect(deltas).toEqual(["\n\nWell", ", "]);
  });

  test("ends with response.incomplete if the answer is cut off", async () => {
    harness.runtime.script = play([{ kind: "text", text: "He" }, { ...DONE, reason: "length" } as InferenceEvent]);
    expect(checkStream(await stream({}))).toMatchObject({ status: "incomplete", output: [{ status: "incomplete" }] });
  });

  test("has the log probabilities of its text", async () => {
    const logprobs = [
      {
        id: 1,
        token: "He",
        bytes: [72, 101],
        logprob: -0.5,
        top: [{ id: 2, token: "Ha", bytes: [72, 97], logprob: -1 }],
      },
    ];
    harness.runtime.script = play([{ kind: "text", text: "He", logprobs }, DONE]);
    const frames = await stream({ top_logprobs: 1, include: ["message.output_text.logprobs"] });
    const expected = [
      { token: "He", bytes: [72, 101], logprob: -0.5, top_logprobs: [{ token: "Ha", bytes: [72, 97], logprob: -1 }] },
    ];
    expect(checkStream(frames).output).toMatchObject([{ content: [{ logprobs: expected }] }]);
    expect(frames.find(({ event }) => event === "response.output_text.delta")?.data.logprobs).toEqual(expected);
    expect(asked().logprobs).toBe(1);
  });

  test("attaches early log probabilities to the text that follows", async () => {
    const of = (token: string) => [{ id: 1, token, bytes: [...Buffer.from(token)], logprob: -0.5, top: [] }];
    harness.runtime.script = play([
      { kind: "text", text: "", logprobs: of("<think>") },
      { kind: "thinking", text: "hm" },
      { kind: "text", text: "", logprobs: of("H") },
      { kind: "text", text: "He", logprobs: of("e") },
      { kind: "text", text: "", logprobs: of("l") },
      { kind: "text", text: "", logprobs: of("l") },
      { kind: "text", text: "llo", logprobs: of("o") },
      DONE,
    ]);
    const frames = await stream({ include: ["message.output_text.logprobs"] });
    checkStream(frames);
    const deltas = frames.filter(({ event }) => event === "response.output_text.delta");
    const calls = deltas.map(({ data }) => [
      data.delta,
      data.logprobs.map((item: { token: string }) => item.token).join(""),
    ]);
    expect(calls).toEqual([
      ["He", "He"],
      ["llo", "llo"],
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
      { error: { message: "too many", type: "api_error", param: null, code: null } },
    ]);
    expect(response.headers.get("x-request-id")).toMatch(/^req_/);
  });

  test("ends with response.failed and the partial output if it fails later", async () => {
    harness.runtime.script = async function* () {
      yield { kind: "text", text: "He" };
      throw new AppError("runner", "the model is gone");
    };
    expect(checkStream(await stream({}))).toMatchObject({
      status: "failed",
      error: { code: "server_error", message: "the model is gone" },
      output: [{ type: "message", status: "incomplete", content: [{ text: "He" }] }],
    });
  });

  test("stops the model if the client hangs up", async () => {
    harness.runtime.script = endless(5);
    const abort = new AbortController();
    const body = JSON.stringify({ model: "m", input: "hi", stream: true });
    const response = await fetch(`${url}/v1/responses`, { method: "POST", body, signal: abort.signal });
    await response.body!.getReader().read();
    abort.abort();
    expect(await eventually(() => harness.runtime.running() === 0)).toBe(true);
  });
});

describe("settings of the request", () => {
  test("reach the runtime under native names, and stay absent if they are missing", async () => {
    await post({ temperature: 0.5, top_p: 0.25, max_output_tokens: 7, truncation: "disabled", store: true });
    expect(asked()).toEqual({
      model: "m",
      messages: [{ role: "user", content: "hi" }],
      options: { num_predict: 7, temperature: 0.5, top_p: 0.25 },
      truncate: false,
      signal: expect.any(AbortSignal),
    });
    await post({});
    expect(asked().options).toEqual({});
  });

  const schema = { type: "object", properties: { a: { type: "string" } } };
  test.each([
    [{ type: "text" }, undefined],
    [{ type: "json_object" }, "json"],
    [{ type: "json_schema", name: "n", strict: true, schema }, schema],
  ])("text.format %j reaches the runtime", async (format, wanted) => {
    expect((await whole({ text: { format } })).text.format).toEqual(format as never);
    expect(asked().format).toEqual(wanted as never);
  });

  test.each([
    ["auto", "auto"],
    ["none", "none"],
    ["required", "required"],
    [{ type: "function", name: "g" }, { name: "g" }],
  ])("tool_choice %j reaches the runtime as %j", async (tool_choice, wanted) => {
    expect((await whole({ tools: [fn("f"), fn("g")], tool_choice })).tool_choice).toEqual(tool_choice as never);
    expect(asked().toolChoice).toEqual(wanted as never);
  });

  test("allowed_tools drops the other tools", async () => {
    const tool_choice = { type: "allowed_tools", mode: "required", tools: [{ type: "function", name: "g" }] };
    await post({ tools: [fn("f"), fn("g")], tool_choice });
    expect(asked()).toMatchObject({ toolChoice: "required", tools: [{ function: { name: "g" } }] });
    expect(asked().tools).toHaveLength(1);
  });

  test("parallel_tool_calls false keeps only one call", async () => {
    harness.runtime.script = play([call("f", {}), call("g", {}), DONE]);
    const { output, parallel_tool_calls } = await whole({ tools: [fn("f"), fn("g")], parallel_tool_calls: false });
    expect([output.length, parallel_tool_calls]).toEqual([1, false]);
  });

  test("functions of a namespace have a namespace and a name for clients, and one joined name for the model", async () => {
    harness.runtime.script = play([call("crm.find", { a: 1 }), DONE]);
    const tools = [{ type: "namespace", name: "crm", description: "d", tools: [fn("find", { description: "e" })] }];
    const { output } = await whole({ tools });
    expect(asked().tools).toEqual([
      { type: "function", function: { name: "crm.find", description: "e", parameters: { type: "object" } } },
    ]);
    expect(output).toMatchObject([{ type: "function_call", name: "find", namespace: "crm" }]);
  });

  test("joined names are split only into a namespace and a name of the request", async () => {
    const names = ["fs.read", "fs.write", "a.b.c", "a.x"];
    harness.runtime.script = play([...names.map((name) => call(name, {})), DONE]);
    const space = (name: string, own: string) => ({ type: "namespace", name, tools: [fn(own)] });
    const tools = [fn("fs.read"), space("fs", "write"), space("a", "x"), space("a.b", "c")];
    const { output } = await whole({ tools });
    expect(
      output.map((item) => ["namespace" in item ? item.namespace : undefined, "name" in item && item.name]),
    ).toEqual([
      [undefined, "fs.read"],
      ["fs", "write"],
      ["a.b", "c"],
      ["a", "x"],
    ]);
  });

  test("web search is left out, and the log names it", async () => {
    const { tools } = await whole({ tools: [{ type: "web_search" }, fn("f")] });
    expect(tools.map(({ type }) => type)).toEqual(["function"]);
    expect(asked().tools).toHaveLength(1);
    expect(harness.logs).toContainEqual(expect.objectContaining({ level: "warn", types: ["web_search"] }));
  });
});

test("input_tokens counts the prompt without running the model", async () => {
  const body = JSON.stringify({ model: "m", instructions: "be kind", input: "now" });
  const response = await fetch(`${url}/v1/responses/input_tokens`, { method: "POST", body });
  expect([response.status, await response.json()]).toEqual([
    200,
    { object: "response.input_tokens", input_tokens: expect.any(Number) },
  ]);
  expect(harness.runtime.requests).toEqual([]);
});

describe("invalid requests are refused", () => {
  const item = (value: unknown) => ({ input: [value] });
  test.each([
    [{ model: "" }, 400, "model is required"],
    [{ input: null }, 400, "input is required"],
    [{ input: [] }, 400, "input: expected a text or at least one message, got none"],
    [{ model: "nope" }, 404, "model 'nope' not found"],
    [
      { conversation: "c" },
      400,
      "conversation: not stored here; expected 'previous_response_id', or the whole conversation in 'input'",
    ],
    [{ prompt: {} }, 400, "prompt: not stored here; expected its text in 'instructions' and 'input'"],
    [{ background: true }, 400, "background: not supported; expected false, with or without 'stream'"],
    [{ max_output_tokens: 0 }, 400, "max_output_tokens: expected a number of at least 1, got 0"],
    [{ top_p: 1e300 }, 400, 'option "top_p" must be of type float32'],
    [{ truncation: "some" }, 400, 'truncation: expected "auto" or "disabled", got "some"'],
    [{ top_logprobs: 21 }, 400, "top_logprobs must be between 0 and 20"],
    [
      { text: { format: { type: "xml" } } },
      400,
      'text.format.type: expected "text", "json_object" or "json_schema", got "xml"',
    ],
    [
      { text: { format: { type: "json_schema", name: "n", strict: true, schema: { not: { pattern: "x" } } } } },
      400,
      "text.format.schema: strict: a grammar cannot enforce $.not: remove it, or set strict to false",
    ],
    [{ text: { format: { type: "json_schema" } } }, 400, "text.format.schema: expected an object, got nothing"],
    [item({}), 400, "input.0: input item missing required 'type' field"],
    [item({ type: "hologram" }), 400, 'input.0: unknown input item type: "hologram"'],
    [
      item({ type: "item_reference", id: "x" }),
      400,
      'input.0: "x" is not a recent item; expected the item itself (clients send it with store: false)',
    ],
    [
      item({ role: "robot", content: "x" }),
      400,
      'input.0.role: expected "user", "assistant", "system" or "developer", got "robot"',
    ],
    [
      item({ role: "user", content: [{ type: "input_file" }] }),
      400,
      "input.0.content.0: file inputs are not currently supported",
    ],
    [
      item({ role: "user", content: [{ type: "input_image", image_url: "http://x" }] }),
      400,
      "image URLs are not currently supported, please use base64 encoded data instead",
    ],
    [
      { tools: [{ type: "code_interpreter" }] },
      400,
      'tools.0.type: expected "function" or "custom": a tool that the client runs, got "code_interpreter"',
    ],
    [{ tool_choice: "perhaps" }, 400, 'tool_choice: expected "auto", "none", "required" or an object, got "perhaps"'],
    [{ tool_choice: "required" }, 400, 'tool_choice: expected tools with "required", got none'],
    [
      { tools: [fn("f")], tool_choice: { type: "function", name: "h" } },
      400,
      'tool_choice.name: expected the name of one of the tools, got "h"',
    ],
  ])("%j: %d %s", async (body, status, message) => {
    const response = await post(body);
    const { error } = (await response.json()) as { error: { message: string; type: string } };
    expect([response.status, error.message]).toEqual([status, message]);
    expect(error.type).toBe(status === 404 ? "not_found_error" : "invalid_request_error");
  });
});
