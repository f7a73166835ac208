/** `tool_choice` of POST /api/chat, with the embedded model behind templates of several families. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { ndjson, startHearth, type Hearth } from "./hearth.ts";

setDefaultTimeout(120_000);

const golden = (path: string): string =>
  readFileSync(resolve(import.meta.dir, "../engine/text/template/golden/go", path), "utf8");
const thinker =
  "{{ range .Messages }}<|im_start|>{{ .Role }}\n{{ if .Thinking }}My name{{ .Thinking }}Hearth.{{ end }}{{ .Content }}" +
  '{{ range .ToolCalls }}<tool_call>\n{"name": "{{ .Function.Name }}", "arguments": {{ .Function.Arguments }}}{{ end }}' +
  "<|im_end|>\n{{ end }}{{ if .Tools }}{{ end }}<|im_start|>assistant\n";

/** The prompt opens thoughts that the embedded model does not close. */
const kimi =
  '{{ range .Messages }}<|open|>message role="{{ .Role }}"<|sep|>' +
  "{{ if .Thinking }}<|open|>think<|sep|>{{ .Thinking }}<|close|>think<|sep|>{{ end }}{{ .Content }}" +
  '{{ range .ToolCalls }}<|open|>call tool="{{ .Function.Name }}"<|sep|>{{ end }}<|end_of_msg|>{{ end }}' +
  '{{ if .Tools }}{{ end }}<|open|>message role="assistant"<|sep|>' +
  "<|open|>{{ if and .IsThinkSet (not .Think) }}response{{ else }}think{{ end }}<|sep|>";

const MODELS = {
  llama: golden("llama31-tools.gotmpl"),
  mistral: golden("mistral-tools.gotmpl"),
  harmony: golden("harmony.gotmpl"),
  command: golden("command-r.gotmpl"),
  qwen: golden("qwen-tools.gotmpl"),
  thinker,
  kimi,
};

const tool = (name: string, parameters?: object) => ({
  type: "function",
  function: { name, ...(parameters ? { parameters } : {}) },
});
const weather = tool("get_weather", {
  type: "object",
  properties: {
    city: { type: "string", maxLength: 20 },
    unit: { enum: ["c", "f"] },
    near: { type: "array", items: { $ref: "#/$defs/place" }, maxItems: 2 },
  },
  required: ["city", "unit", "near"],
  $defs: {
    place: { type: "object", properties: { km: { type: "integer", minimum: 0, maximum: 99 } }, required: ["km"] },
  },
});
const tools = [weather, tool("now")];
const messages = [{ role: "user", content: "Hello! Who are you?" }];
const options = { temperature: 0, num_predict: 400 };

let hearth: Hearth;
beforeAll(async () => {
  hearth = await startHearth();
  for (const [model, template] of Object.entries(MODELS)) {
    const response = await hearth.post("/api/create", { model, from: "hearth", template, stream: false });
    expect(await response.json()).toEqual({ status: "success" });
  }
});
afterAll(() => hearth.stop());

async function chat(body: object): Promise<Record<string, any>> {
  const response = await hearth.post("/api/chat", {
    model: "hearth",
    messages,
    tools,
    options,
    stream: false,
    ...body,
  });
  return { status: response.status, ...((await response.json()) as object) };
}

function expectCall(answer: Record<string, any>, name: string): void {
  const { message, done_reason } = answer;
  expect([message?.content, message?.tool_calls?.length, done_reason, answer["error"]]).toEqual([
    "",
    1,
    "stop",
    undefined,
  ]);
  const [call] = message.tool_calls;
  expect([call.function.name, call.function.index]).toEqual([name, 0]);
  expect(call.id).toMatch(/^call_[a-z0-9]{8}$/);
  if (name === "now") return expect(call.function.arguments).toEqual({});
  const { city, unit, near } = call.function.arguments;
  expect(typeof city === "string" && ["c", "f"].includes(unit) && Array.isArray(near)).toBe(true);
  for (const place of near) expect(Number.isInteger(place.km)).toBe(true);
}

describe("POST /api/chat tool_choice:", () => {
  test.each(["hearth", ...Object.keys(MODELS)])("a named tool is called through the template of %s", async (model) => {
    const choice = (name: string) => ({ type: "function", function: { name } });
    expectCall(await chat({ model, tool_choice: choice("get_weather") }), "get_weather");
    expectCall(await chat({ model, tool_choice: choice("now") }), "now");
  });

  test("required: a tool is called, though the question needs none", async () => {
    const answer = await chat({ tool_choice: "required" });
    expectCall(answer, answer["message"].tool_calls[0].function.name);
  });

  test("required, streamed: the call is in its own chunk, before the last one", async () => {
    const body = { model: "hearth", messages, tools: [tools[1]], options, tool_choice: "required" };
    const chunks = await Array.fromAsync(ndjson(await hearth.post("/api/chat", body)));
    expect(chunks.map(({ message, done }) => [message.content, message.tool_calls?.length, done])).toEqual([
      ["", 1, false],
      ["", undefined, true],
    ]);
  });

  test("required: a thinking model thinks before the call", async () => {
    const answer = await chat({ model: "thinker", tool_choice: { name: "now" } });
    expectCall(answer, "now");
    expect(answer["message"].thinking).toBe("is");
  });

  test("thinking_budget limits thoughts, with tools, a format or neither", async () => {
    for (const body of [{ tool_choice: { name: "now" } }, { tools: undefined }, { tools: undefined, format: "json" }]) {
      const answer = await chat({
        model: "thinker",
        ...body,
        options: { ...options, thinking_budget: 0, num_predict: 60 },
      });
      expect([answer["status"], answer["message"].thinking]).toEqual([200, undefined]);
      const free = await chat({
        model: "thinker",
        ...body,
        options: { ...options, thinking_budget: 50, num_predict: 60 },
      });
      expect(free["message"].thinking).toBe("is");
    }
  });

  test("required: stop strings do not cut the call; num_predict does, with done_reason length", async () => {
    expectCall(await chat({ tool_choice: { name: "now" }, options: { ...options, stop: ["now", "}", '"'] } }), "now");
    const { message, done_reason } = await chat({
      tool_choice: { name: "now" },
      options: { ...options, num_predict: 3 },
    });
    expect([message.tool_calls, done_reason]).toEqual([undefined, "length"]); // arguments must be an object here
    expect(message.content).toStartWith('{"');
  });

  test("none: the prompt has no tools, and calls are not parsed", async () => {
    const question = { messages: [{ role: "user", content: "What is the weather in Paris?" }] };
    const free = await chat({ ...question, tools: undefined });
    const none = await chat({ ...question, tool_choice: "none" });
    expect([none["message"], none["prompt_eval_count"]]).toEqual([free["message"], free["prompt_eval_count"]]);
  });

  test.each([
    [{ name: "other" }, "tool_choice: expected one of the tools 'get_weather', 'now', got 'other'"],
    [
      "sometimes",
      'tool_choice: expected "auto", "none", "required" or {"type": "function", "function": {"name": "…"}}, got "sometimes"',
    ],
  ])("%p is refused with 400", async (tool_choice, error) => {
    expect(await chat({ tool_choice })).toEqual({ status: 400, error });
  });

  test("a broken schema is refused with 400, and the error names the tool", async () => {
    const broken = tool("broken", { type: "object", properties: { x: { $ref: "#/$defs/none" } } });
    const { status, error } = await chat({ tools: [broken], tool_choice: "required" });
    expect([status, error]).toEqual([400, "tools: broken.x.$ref: '#/$defs/broken/$defs/none' points at nothing"]);
  });
});
