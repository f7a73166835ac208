/** `POST /v1/chat/completions`, row by row, over real sockets. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { AppError } from "../../src/base/errors.ts";
import type { ChatRequest, InferenceEvent } from "../../src/runtime/requests/runtime.ts";
import { DONE, endless, hello, pause, play } from "./fakes.ts";
import { framesOf, makeHarness, NOW, type Harness } from "./harness.ts";

let harness: Harness;
let url: string;
beforeAll(async () => {
  harness = await makeHarness();
  ({ url } = harness.listen());
});
afterAll(() => harness.close());
beforeEach(() => void (harness.runtime.script = hello));

const USER = { role: "user", content: "hi" };
const CREATED = Math.floor(NOW.getTime() / 1000);

function post(fields: object, signal?: AbortSignal): Promise<Response> {
  const body = JSON.stringify({ model: "m", messages: [USER], ...fields });
  return fetch(`${url}/v1/chat/completions`, { method: "POST", body, ...(signal ? { signal } : {}) });
}

const json = async (response: Response): Promise<any> => response.json();

/** The runtime's request, for a request that succeeds. */
async function asked(fields: object): Promise<ChatRequest> {
  const response = await post(fields);
  expect([response.status, response.ok ? "" : await response.text()]).toEqual([200, ""]);
  return harness.runtime.requests.at(-1) as ChatRequest;
}

/** The message of a request that fails with 400, before the model is called. */
async function refusal(fields: object): Promise<string> {
  const before = harness.runtime.requests.length;
  const response = await post(fields);
  const { error } = await json(response);
  expect([response.status, error.type, harness.runtime.requests.length]).toEqual([
    400,
    "invalid_request_error",
    before,
  ]);
  return error.message;
}

const weather = (city: string, id?: string): InferenceEvent => ({
  kind: "toolCall",
  call: { ...(id ? { id } : {}), function: { name: "weather", arguments: { city } } },
});

describe("reply", () => {
  test("stream absent or false: one chat.completion", async () => {
    for (const fields of [{}, { stream: false }]) {
      const response = await post(fields);
      expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
      expect(await json(response)).toEqual({
        id: expect.stringMatching(/^chatcmpl-[0-9a-f]{32}$/),
        object: "chat.completion",
        created: CREATED,
        model: "m",
        system_fingerprint: "fp_hearth",
        choices: [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
        usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5, prompt_tokens_details: { cached_tokens: 1 } },
        timings: expect.objectContaining({ predicted_n: 2 }),
      });
    }
  });

  test("stream true: chunks with one id, the role in the first only, the reason in the last, and [DONE]", async () => {
    const response = await post({ stream: true });
    expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    const frames = await framesOf(response);
    expect(frames.pop()).toBe("[DONE]");
    expect(frames.map((frame: any) => frame.choices)).toEqual([
      [{ index: 0, delta: { role: "assistant", content: "He" }, finish_reason: null }],
      [{ index: 0, delta: { content: "llo" }, finish_reason: null }],
      [{ index: 0, delta: {}, finish_reason: "stop" }],
    ]);
    const heads = frames.map((frame): object => ({ ...frame, choices: undefined, timings: undefined }));
    expect(heads[0]).toEqual({
      id: expect.stringMatching(/^chatcmpl-/),
      object: "chat.completion.chunk",
      created: CREATED,
      model: "m",
      system_fingerprint: "fp_hearth",
    });
    for (const head of heads) expect(head).toEqual(heads[0]!);
  });

  test("stream_options.include_usage: a last chunk without choices has the counts", async () => {
    const frames: any[] = await framesOf(await post({ stream: true, stream_options: { include_usage: true } }));
    expect(frames.slice(-2)).toEqual([
      expect.objectContaining({
        choices: [],
        usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5, prompt_tokens_details: { cached_tokens: 1 } },
      }),
      "[DONE]",
    ]);
    expect(frames.slice(0, -2).some((frame) => "usage" in frame)).toBe(false);
  });

  test("finish_reason: length", async () => {
    harness.runtime.script = play([
      { kind: "text", text: "a" },
      { kind: "done", reason: "length" },
    ]);
    expect((await json(await post({}))).choices[0].finish_reason).toBe("length");
    expect((await framesOf(await post({ stream: true }))).at(-2)).toMatchObject({
      choices: [{ finish_reason: "length" }],
    });
  });

  test("usage.truncated: true if part of the prompt was left out", async () => {
    harness.runtime.script = play([{ kind: "done", reason: "stop", truncated: true }]);
    expect((await json(await post({}))).usage.truncated).toBe(true);
  });

  test("an empty answer has a role and a finish_reason", async () => {
    harness.runtime.script = play([DONE]);
    const frames: any[] = await framesOf(await post({ stream: true }));
    expect(frames.map((frame) => frame.choices?.[0])).toEqual([
      { index: 0, delta: { role: "assistant" }, finish_reason: "stop" },
      undefined,
    ]);
  });

  test("message.reasoning: thinking, apart from content", async () => {
    harness.runtime.script = play([{ kind: "thinking", text: "hm" }, { kind: "text", text: "yes" }, DONE]);
    expect((await json(await post({}))).choices[0].message).toEqual({
      role: "assistant",
      content: "yes",
      reasoning: "hm",
    });
    const frames: any[] = await framesOf(await post({ stream: true }));
    expect(frames.slice(0, 2).map((frame) => frame.choices[0].delta)).toEqual([
      { role: "assistant", content: "", reasoning: "hm" },
      { content: "yes" },
    ]);
  });

  test("tool_calls: ids, indices, arguments as text, and finish_reason tool_calls", async () => {
    harness.runtime.script = play([{ kind: "text", text: "\n" }, weather("Rome"), weather("Oslo", "call_1"), DONE]);
    const calls = [
      {
        id: expect.stringMatching(/^call_[0-9a-z]{8}$/),
        index: 0,
        type: "function",
        function: { name: "weather", arguments: '{"city":"Rome"}' },
      },
      { id: "call_1", index: 1, type: "function", function: { name: "weather", arguments: '{"city":"Oslo"}' } },
    ];
    expect((await json(await post({}))).choices[0]).toEqual({
      index: 0,
      message: { role: "assistant", content: "", tool_calls: calls },
      finish_reason: "tool_calls",
    });
    const frames: any[] = await framesOf(await post({ stream: true }));
    expect(frames.slice(0, 3).map((frame) => frame.choices[0])).toEqual([
      { index: 0, delta: { role: "assistant", content: "", tool_calls: [calls[0]] }, finish_reason: null },
      { index: 0, delta: { content: "", tool_calls: [calls[1]] }, finish_reason: null },
      { index: 0, delta: {}, finish_reason: "tool_calls" },
    ]);
  });

  test("parallel_tool_calls false: one call at most", async () => {
    harness.runtime.script = play([weather("Rome"), weather("Oslo"), DONE]);
    const { choices } = await json(await post({ parallel_tool_calls: false }));
    expect(choices[0].message.tool_calls).toHaveLength(1);
    expect(choices[0].finish_reason).toBe("tool_calls");
    const frames: any[] = await framesOf(await post({ parallel_tool_calls: false, stream: true }));
    expect(frames.filter((frame) => frame.choices?.[0]?.delta.tool_calls)).toHaveLength(1);
    expect((await json(await post({ parallel_tool_calls: true }))).choices[0].message.tool_calls).toHaveLength(2);
  });

  test("logprobs: the chosen tokens with their bytes and alternatives", async () => {
    const chosen = { token: "He", bytes: [72, 101], logprob: -0.1 };
    const event: InferenceEvent = {
      kind: "text",
      text: "He",
      logprobs: [{ id: 1, ...chosen, top: [{ id: 1, ...chosen }] }],
    };
    harness.runtime.script = play([event, DONE]);
    const wanted = { content: [{ ...chosen, top_logprobs: [chosen] }], refusal: null };
    expect((await json(await post({ logprobs: true, top_logprobs: 1 }))).choices[0].logprobs).toEqual(wanted);
    const frames: any[] = await framesOf(await post({ logprobs: true, top_logprobs: 1, stream: true }));
    expect(frames[0].choices[0].logprobs).toEqual(wanted);
    expect((await json(await post({}))).choices[0]).not.toHaveProperty("logprobs");
  });
});

describe("logprobs", () => {
  const of = (token: string) => [{ id: 1, token, bytes: [...Buffer.from(token)], logprob: -0.5, top: [] }];
  const tokensOf = (choice: any): string => choice.logprobs.content.map(({ token }: any) => token).join("");

  test("contain the tokens of the content, without those of thinking and calls", async () => {
    harness.runtime.script = play([
      { kind: "text", text: "", logprobs: of("<think>") },
      { kind: "thinking", text: "hm" },
      { kind: "text", text: "", logprobs: of("H") },
      { kind: "text", text: "Hi", logprobs: of("i") },
      DONE,
    ]);
    expect(tokensOf((await json(await post({ logprobs: true }))).choices[0])).toBe("Hi");
    const frames: any[] = await framesOf(await post({ logprobs: true, stream: true }));
    expect(frames.slice(0, 2).map((frame) => [frame.choices[0].delta.content, tokensOf(frame.choices[0])])).toEqual([
      ["", ""],
      ["Hi", "Hi"],
    ]);
    harness.runtime.script = play([{ kind: "text", text: "", logprobs: of("<tool>") }, weather("Rome"), DONE]);
    expect(tokensOf((await json(await post({ logprobs: true }))).choices[0])).toBe("");
  });
});

describe("request", () => {
  test("absent settings stay absent", async () => {
    const { options, ...rest } = await asked({});
    expect(options).toEqual({});
    expect(Object.keys(rest).toSorted()).toEqual(["messages", "model", "signal"]);
  });

  test.each([
    [{ max_tokens: 7 }, { num_predict: 7 }],
    [{ max_completion_tokens: 9 }, { num_predict: 9 }],
    [{ max_completion_tokens: 9, max_tokens: 7 }, { num_predict: 9 }],
    [{ seed: 42 }, { seed: 42 }],
    [
      { temperature: 0, top_p: 0.5 },
      { temperature: 0, top_p: 0.5 },
    ],
    [
      { frequency_penalty: -1, presence_penalty: 1.5 },
      { frequency_penalty: -1, presence_penalty: 1.5 },
    ],
    [{ stop: "a" }, { stop: ["a"] }],
    [{ stop: ["a", "b"] }, { stop: ["a", "b"] }],
    [{ stop: null, seed: null }, {}],
    [
      { top_k: 3, min_p: 0.1, num_ctx: 2048 },
      { top_k: 3, min_p: 0.1, num_ctx: 2048 },
    ],
    [
      { options: { num_ctx: 512, temperature: 1 }, temperature: 0.2 },
      { num_ctx: 512, temperature: 0.2 },
    ],
    [{ user: "u", store: true, metadata: { a: "b" }, logit_bias: {}, service_tier: "auto" }, {}],
    [{ logit_bias: { "7": -100, "12": 2.5 } }, { logit_bias: { "7": -100, "12": 2.5 } }],
    [{ logit_bias: null }, {}],
  ])("%j becomes the options %j", async (fields, options) => {
    expect((await asked(fields)).options).toEqual(options);
  });

  test("truncate and shift reach the runtime", async () => {
    expect(await asked({ truncate: false, shift: false })).toMatchObject({ truncate: false, shift: false });
  });

  test("keep_alive reaches the runtime", async () => {
    expect((await asked({ keep_alive: "10m" })).keepAliveMs).toBe(600_000);
    expect((await asked({ keep_alive: 0 })).keepAliveMs).toBe(0);
  });

  test("response_format reaches the runtime as a format", async () => {
    const schema = { type: "object", properties: {} };
    expect((await asked({ response_format: { type: "json_object" } })).format).toBe("json");
    expect(
      (await asked({ response_format: { type: "json_schema", json_schema: { name: "x", schema } } })).format,
    ).toEqual(schema);
    expect((await asked({ response_format: { type: "text" } })).format).toBeUndefined();
  });

  test("a strict schema is refused if a grammar cannot enforce it", async () => {
    const items = { enum: ["a", "b"] };
    const ask = (list: object, strict?: boolean | null) => {
      const schema = { type: "object", properties: { list } };
      return { response_format: { type: "json_schema", json_schema: { name: "x", strict, schema } } };
    };
    const open = { type: "array", items: { type: "string" }, uniqueItems: true };
    const path = "response_format.json_schema.schema: strict: a grammar cannot enforce $.list.uniqueItems";
    expect(await refusal(ask(open, true))).toBe(`${path}: remove it, or set strict to false`);
    for (const strict of [false, null, undefined]) expect((await asked(ask(open, strict))).format).toBeObject();
    expect((await asked(ask({ ...open, items }, true))).format).toBeObject(); // each order can be listed
    expect((await asked(ask({ type: "string", pattern: "^a", maxLength: 9 }, true))).format).toBeObject();
  });

  test("logprobs and top_logprobs reach the runtime", async () => {
    expect((await asked({ logprobs: true })).logprobs).toBe(0);
    expect((await asked({ logprobs: true, top_logprobs: 20 })).logprobs).toBe(20);
    expect((await asked({ logprobs: false, top_logprobs: 0 })).logprobs).toBeUndefined();
  });

  test("tools and tool_choice reach the runtime", async () => {
    const tool = (name: string) => ({ type: "function", function: { name, parameters: { type: "object" } } });
    const tools = [tool("a"), tool("b")];
    const choose = (tool_choice?: unknown) => asked({ tools, tool_choice });
    expect(await choose()).toMatchObject({ tools });
    expect((await choose()).toolChoice).toBeUndefined();
    for (const choice of ["auto", "none", "required"] as const) expect((await choose(choice)).toolChoice).toBe(choice);
    expect((await choose({ type: "function", function: { name: "b" } })).toolChoice).toEqual({ name: "b" });
    const allowed = { mode: "required", tools: [{ type: "function", function: { name: "b" } }] };
    expect(await choose({ type: "allowed_tools", allowed_tools: allowed })).toMatchObject({
      tools: [tool("b")],
      toolChoice: "required",
    });
    const without = await asked({ tools: [], tool_choice: "auto" });
    expect([without.tools, without.toolChoice]).toEqual([undefined, undefined]);
  });

  test("reasoning_effort or reasoning.effort none turns thinking off", async () => {
    expect((await asked({ reasoning_effort: "none" })).think).toBe(false);
    expect((await asked({ reasoning: { effort: "none" }, reasoning_effort: "high" })).think).toBe(false);
    expect((await asked({})).think).toBeUndefined();
  });

  test("n may be 1", async () => {
    expect((await asked({ n: 1 })).model).toBe("m");
  });
});

describe("errors", () => {
  test.each([
    [{ model: undefined }, "model is required"],
    [{ model: "a b" }, "invalid model name"],
    [{ messages: [] }, "[] is too short - 'messages'"],
    [{ messages: null }, "[] is too short - 'messages'"],
    [{ n: 0 }, "n: expected 1 to 16 choices, got 0"],
    [{ n: 17 }, "n: expected 1 to 16 choices, got 17"],
    [{ logit_bias: 7 }, 'option "logit_bias": expected an object, got 7'],
    [{ logit_bias: { "5": 101 } }, 'option "logit_bias": expected numbers from -100 to 100, got 101 for token 5'],
    [{ logit_bias: { hello: 1 } }, 'option "logit_bias": expected ids of tokens as keys, got "hello"'],
    [{ stop: 7 }, "invalid type for 'stop' field: expected text or texts, got number"],
    [{ stop: ["a", {}] }, "invalid type for 'stop' field: expected text or texts, got object"],
    [{ temperature: "hot" }, 'temperature: expected a number, got "hot"'],
    [{ options: { temperature: "hot" } }, 'option "temperature" must be of type float32'],
    [{ keep_alive: "soon" }, 'keep_alive: expected a number of seconds or a duration such as "5m", got "soon"'],
    [{ top_logprobs: 21, logprobs: true }, "top_logprobs must be between 0 and 20"],
    [{ top_logprobs: 2 }, "top_logprobs: expected logprobs to be true"],
    [
      { response_format: { type: "yaml" } },
      "response_format.type: expected text, json_object or json_schema, got 'yaml'",
    ],
    [{ response_format: { type: "json_schema" } }, "response_format.json_schema.schema: expected a JSON schema"],
    [{ tool_choice: "required" }, 'tool_choice: expected tools with "required", got none'],
    [{ tool_choice: "perhaps" }, 'tool_choice: expected "auto", "none", "required" or an object, got "perhaps"'],
    [
      { tool_choice: { type: "function", function: { name: "x" } } },
      'tool_choice.function.name: expected the name of one of the tools, got "x"',
    ],
    [{ tool_choice: { type: "any" } }, 'tool_choice.type: expected "function", "custom" or "allowed_tools", got "any"'],
    [
      { tool_choice: { type: "allowed_tools", allowed_tools: { mode: "none", tools: [] } } },
      'tool_choice.allowed_tools.mode: expected "auto" or "required", got "none"',
    ],
    [{ tools: [{ type: "magic" }] }, "tools[0].type: expected function or custom, got 'magic'"],
    [{ tools: [{ type: "function" }] }, "tools[0].function.name: expected a name, got none"],
  ])("400 for %j: %s", async (fields, message) => {
    expect(await refusal(fields)).toBe(message);
  });

  test("404 for a missing model, in OpenAI's shape", async () => {
    const response = await post({ model: "nope" });
    expect([response.status, await json(response)]).toEqual([
      404,
      { error: { message: "model 'nope' not found", type: "not_found_error", param: null, code: null } },
    ]);
  });

  test("400 for a body that is not JSON", async () => {
    const response = await fetch(`${url}/v1/chat/completions`, { method: "POST", body: "{" });
    expect([response.status, (await json(response)).error.message]).toEqual([
      400,
      "request body: expected JSON: Expected '}'",
    ]);
  });

  test("405 for another method", async () => {
    expect((await fetch(`${url}/v1/chat/completions`)).status).toBe(405);
  });

  test("an error before the first chunk: a status, streaming or not", async () => {
    harness.runtime.script = async function* () {
      yield* [];
      throw new AppError("busy", "server busy");
    };
    for (const stream of [true, false]) {
      const response = await post({ stream });
      expect([response.status, (await json(response)).error]).toEqual([
        503,
        { message: "server busy", type: "api_error", param: null, code: null },
      ]);
    }
  });

  test("an error after the first chunk: an error frame, and no [DONE]", async () => {
    harness.runtime.script = async function* () {
      yield { kind: "text", text: "a" };
      throw new AppError("runner", "model runner has unexpectedly stopped");
    };
    const frames = await framesOf(await post({ stream: true }));
    expect(frames.slice(1)).toEqual([
      { error: { message: "model runner has unexpectedly stopped", type: "api_error", param: null, code: null } },
    ]);
  });

  test("an answer without a final event is an error", async () => {
    harness.runtime.script = play([{ kind: "text", text: "a" }]);
    expect((await framesOf(await post({ stream: true }))).at(-1)).toHaveProperty("error");
    expect((await post({})).status).toBe(500);
  });
});

test("a client that hangs up stops the model", async () => {
  for (const script of [endless(5), endless(60_000)]) {
    for (const stream of [true, false]) {
      harness.runtime.script = script;
      const gone = new AbortController();
      const answer = post({ stream }, gone.signal).then((response) => response.text());
      answer.catch(() => {});
      while (harness.runtime.running() === 0) await Bun.sleep(1);
      gone.abort();
      for (let tries = 0; tries < 500 && harness.runtime.running() > 0; tries++) await Bun.sleep(10);
      expect(harness.runtime.running()).toBe(0);
    }
  }
});

test("each chunk is sent as soon as it exists", async () => {
  harness.runtime.script = async function* ({ signal }) {
    yield { kind: "text", text: "first" };
    await pause(60_000, signal);
  };
  const gone = new AbortController();
  const response = await post({ stream: true }, gone.signal);
  const { value } = await response.body!.getReader().read();
  expect(new TextDecoder().decode(value)).toContain('"content":"first"');
  gone.abort();
});
