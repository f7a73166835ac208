/** Null counts as absent: a request with it has the same effect as one without the field, in every dialect. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { makeHarness, type Harness } from "./harness.ts";

let harness: Harness;
beforeAll(async () => void (harness = await makeHarness()));
afterAll(() => harness.close());

const parameters = { type: "object", properties: { a: { type: "string" } }, required: ["a"] };
const fn = { name: "f", description: "d", parameters };
const sampling = { temperature: 0.5, top_p: 0.5, seed: 1, stop: ["x"], logit_bias: { 1: 2 }, presence_penalty: 1 };
const ours = { options: { top_k: 3, stop: ["y"] }, keep_alive: 5, truncate: true, shift: true, num_ctx: 64 };
const schema = { type: "json_schema", strict: false, name: "n", schema: parameters };
const image = "data:image/png;base64,AQ==";

const BODIES: Readonly<Record<string, object>> = {
  "/api/chat": {
    messages: [
      { role: "user", content: "hi", images: ["AQ=="] },
      {
        role: "assistant",
        content: "a",
        thinking: "t",
        tool_calls: [{ id: "c", function: { name: "f", arguments: {} } }],
      },
      { role: "tool", content: "r", tool_name: "f", tool_call_id: "c" },
    ],
    tools: [{ type: "function", function: fn }],
    tool_choice: "auto",
    format: "json",
    logprobs: true,
    top_logprobs: 1,
    ...ours,
  },
  "/v1/chat/completions": {
    messages: [
      {
        role: "user",
        name: "n",
        content: [
          { type: "text", text: "hi" },
          { type: "image_url", image_url: { url: image, detail: "low" } },
        ],
      },
      {
        role: "assistant",
        content: "a",
        refusal: "no",
        reasoning: "t",
        tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: "c", content: "r" },
    ],
    tools: [{ type: "function", function: { ...fn, strict: true } }],
    tool_choice: {
      type: "allowed_tools",
      allowed_tools: { mode: "auto", tools: [{ type: "function", function: { name: "f" } }] },
    },
    parallel_tool_calls: true,
    response_format: { type: "json_schema", json_schema: schema },
    reasoning_effort: "low",
    reasoning: { effort: "low" },
    stream_options: { include_usage: true },
    n: 1,
    max_tokens: 5,
    logprobs: true,
    top_logprobs: 1,
    ...sampling,
    ...ours,
  },
  "/v1/responses": {
    input: [
      { type: "message", role: "user", content: [{ type: "input_text", text: "hi" }] },
      {
        type: "reasoning",
        id: "r",
        summary: [{ type: "summary_text", text: "t" }],
        content: [],
        encrypted_content: "e",
      },
      { type: "function_call", id: "i", call_id: "c", name: "f", namespace: "s", arguments: "{}", status: "completed" },
      { type: "function_call_output", call_id: "c", output: "r" },
    ],
    instructions: "i",
    tools: [
      { type: "function", strict: false, ...fn },
      { type: "custom", name: "x", description: "d", format: { type: "text" } },
    ],
    tool_choice: { type: "allowed_tools", mode: "auto", tools: [{ type: "function", name: "f" }] },
    text: { format: schema, verbosity: "low" },
    reasoning: { effort: "low", summary: "auto" },
    include: ["message.output_text.logprobs"],
    metadata: { a: "b" },
    truncation: "auto",
    store: false,
    ...sampling,
    ...ours,
  },
  "/v1/messages": {
    max_tokens: 5,
    system: [{ type: "text", text: "s", cache_control: { type: "ephemeral" } }],
    messages: [
      { role: "user", content: [{ type: "text", text: "hi", citations: [], cache_control: {} }] },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "t", signature: "s" },
          { type: "tool_use", id: "c", name: "f", input: {} },
        ],
      },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "c", content: "r", is_error: true }] },
    ],
    tools: [{ type: "custom", name: "f", description: "d", input_schema: parameters }],
    tool_choice: { type: "auto", disable_parallel_tool_use: true },
    thinking: { type: "enabled", budget_tokens: 1024 },
    output_config: { effort: "low", format: { type: "json_schema", schema: parameters } },
    metadata: { user_id: "u" },
    stop_sequences: ["x"],
    temperature: 0.5,
  },
};

/** A value with the field at a path changed, for each path of fields. */
function* variants(value: unknown, path: string): Generator<{ path: string; absent: unknown; isNull: unknown }> {
  if (typeof value !== "object" || value === null) return;
  for (const [key, each] of Object.entries(value)) {
    const at = Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`;
    const put = (made: unknown): unknown =>
      Array.isArray(value) ? value.map((old, i) => (String(i) === key ? made : old)) : { ...value, [key]: made };
    if (!Array.isArray(value)) yield { path: at, absent: put(undefined), isNull: put(null) };
    for (const inner of variants(each, at))
      yield { path: inner.path, absent: put(inner.absent), isNull: put(inner.isNull) };
  }
}

async function asked(path: string, body: unknown): Promise<unknown> {
  harness.runtime.requests.length = 0;
  const { status } = await harness.post(path, { model: "m", stream: false, ...(body as object) });
  const [request] = harness.runtime.requests;
  return { status, request: { ...request, signal: undefined } };
}

/** Schemas are cleaned where they are used. */
const IN_SCHEMA = /(?:parameters|schema|input_schema)\./;

test.each(Object.entries(BODIES))("%s", async (path, body) => {
  expect(await asked(path, body)).toMatchObject({ status: 200 });
  let count = 0;
  for (const { path: field, absent, isNull } of variants(body, "")) {
    if (IN_SCHEMA.test(field)) continue;
    expect([field, await asked(path, isNull)]).toEqual([field, await asked(path, absent)]);
    count++;
  }
  expect(count).toBeGreaterThan(30);
});
