import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { openStore } from "../../src/library/store/store.ts";
import { framesOf, makeHarness, type Harness } from "./harness.ts";
import { eventsOf } from "./sse-frames.ts";

let harness: Harness;
beforeAll(async () => void (harness = await makeHarness()));
afterAll(() => harness.close());

const KEYS =
  "model name prompt suffix images format options system template context stream raw keep_alive think messages tools verbose " +
  "role content tool_calls function arguments index id temperature stop seed __proto__ constructor toString " +
  "max_tokens max_completion_tokens n logprobs top_logprobs response_format tool_choice reasoning_effort stream_options " +
  "include_usage input dimensions encoding_format content text image_url url type tool_call_id echo json_schema schema effort reasoning " +
  "max_output_tokens instructions parallel_tool_calls truncation call_id output summary stop_sequences tool_use_id source data thinking " +
  "name from files modelfile path license parameters info adapters quantize source destination renderer";
const key = fc.constantFrom(...KEYS.split(" "));
const leaf = fc.oneof(
  fc.constantFrom(null, true, false, "", "m", "json", "5m", "-1", "AAAA", "high", "FROM m", 0, -1, 1.5, 1e300),
  fc.string({ maxLength: 5 }),
);
const { body } = fc.letrec((tie) => ({
  body: fc.dictionary(key, tie("value"), { maxKeys: 8, noNullPrototype: true }),
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    leaf,
    fc.array(tie("value"), { maxLength: 3 }),
    tie("body"),
  ),
}));

/** Statuses of success, and of the caller's mistakes. */
const EXPECTED = [200, 400, 404, 499];

test("the native routes answer any JSON with JSON and an expected status, and log no bug", async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom("generate", "chat", "show"), body, async (route, value) => {
      const sent = { model: "m", ...(value as object) };
      const response = await harness.post(`/api/${route}`, JSON.stringify(sent));
      const text = await response.text();
      for (const line of text.trimEnd().split("\n")) expect(JSON.parse(line)).toBeObject();
      expect(EXPECTED).toContain(response.status);
    }),
    { seed: 31, numRuns: 1500 },
  );
  expect(harness.logs.filter((line) => line["msg"] === "bug")).toEqual([]);
});

test("the OpenAI routes answer any JSON with an expected status and errors in OpenAI's shape, and log no bug", async () => {
  const route = fc.constantFrom("chat/completions", "completions", "embeddings");
  await fc.assert(
    fc.asyncProperty(route, body, fc.boolean(), fc.boolean(), async (path, value, talks, stream) => {
      const messages = talks ? { messages: [{ role: "user", content: "hi", ...(value as object) }] } : {};
      const sent = { model: "m", prompt: "x", stream, ...(value as object), ...messages };
      const response = await harness.post(`/v1/${path}`, JSON.stringify(sent));
      expect(EXPECTED).toContain(response.status);
      if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
        expect((await framesOf(response)).at(-1)).toBe("[DONE]");
      } else {
        const reply = await response.json();
        const wanted = { error: { message: expect.any(String), type: expect.any(String), param: null, code: null } };
        if (!response.ok) expect(reply).toEqual(wanted);
        else expect(reply).toHaveProperty(path === "embeddings" ? "data" : "choices");
      }
    }),
    { seed: 33, numRuns: 1500 },
  );
  expect(harness.logs.filter((line) => line["msg"] === "bug")).toEqual([]);
});

test("the routes of Anthropic and Responses answer any JSON with an expected status, and log no bug", async () => {
  const type = fc.constantFrom(
    ...(
      "message function_call function_call_output reasoning input_text function namespace allowed_tools json_schema " +
      "text image document tool_use tool_result thinking search_result web_search_tool_result tool any enabled"
    ).split(" "),
  );
  const typed = fc.tuple(body, type).map(([value, name]) => ({ ...(value as object), type: name, role: "user" }));
  const route = fc.constantFrom("messages", "messages/count_tokens", "responses");
  await fc.assert(
    fc.asyncProperty(
      route,
      body,
      fc.array(typed, { maxLength: 3 }),
      fc.boolean(),
      fc.boolean(),
      async (path, value, items, talks, stream) => {
        const tools = items.map((item) => ({ name: "f", input_schema: {}, ...item, type: undefined }));
        const said = talks ? "hi" : items;
        const given = { messages: [{ role: "user", content: said }], input: said, ...(talks ? { tools } : {}) };
        const sent = { stream, ...given, ...(value as object), ...(talks ? given : {}), model: "m", max_tokens: 5 };
        const response = await harness.post(`/v1/${path}`, JSON.stringify(sent));
        expect(EXPECTED).toContain(response.status);
        if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
          expect((await eventsOf(response)).at(-1)!.event).toMatch(/^(message_stop|response\.completed)$/);
        } else {
          const reply = (await response.json()) as { error?: { message?: string } };
          if (!response.ok) expect(reply.error?.message).toBeString();
        }
      },
    ),
    { seed: 34, numRuns: 1500 },
  );
  expect(harness.logs.filter((line) => line["msg"] === "bug")).toEqual([]);
});

test("the routes that change models answer any JSON with an expected status, and leave every model whole", async () => {
  await fc.assert(
    fc.asyncProperty(fc.constantFrom("create", "copy", "delete"), body, async (route, value) => {
      const sent = JSON.stringify({ model: "new", from: "m", source: "m", destination: "n", ...(value as object) });
      const response = await harness.call(route === "delete" ? "DELETE" : "POST", `/api/${route}`, sent);
      const text = await response.text();
      if (text) for (const line of text.trimEnd().split("\n")) expect(JSON.parse(line)).toBeObject();
      expect([...EXPECTED, 403]).toContain(response.status);
    }),
    { seed: 32, numRuns: 600 },
  );
  expect(harness.logs.filter((line) => line["msg"] === "bug")).toEqual([]);
  const store = await openStore(harness.root);
  for (const { displayName } of await store.list(expect.unreachable)) await store.load(displayName);
});
