/** Our templates, by the names in a configuration, against other servers' prompts for the same conversations. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "bun:test";
import { templateFacts } from "../../../../src/engine/text/template/facts.ts";
import type { PromptMessage, PromptTool } from "../../../../src/engine/text/template/messages.ts";
import { RENDERERS, rendererOf } from "../../../../src/engine/text/template/named.ts";
import { choosePrompt, renderChat } from "../../../../src/engine/text/template/prompt.ts";
import { CONVERSATIONS } from "./conversations.ts";

const now = new Date(0);
const user = (content: string): PromptMessage => ({ role: "user", content });
const system = (content: string): PromptMessage => ({ role: "system", content });
const assistant = (content: string, more: Partial<PromptMessage> = {}): PromptMessage => ({
  role: "assistant",
  content,
  ...more,
});
const tool = (content: string, tool_name: string): PromptMessage => ({ role: "tool", content, tool_name });
const call = (name: string, args: Record<string, unknown>) => ({ function: { name, arguments: args } });

function render(renderer: string, messages: readonly PromptMessage[], more: object = {}): string {
  return renderChat(choosePrompt({ renderer }), { messages, now, ...more });
}

const ADD: PromptTool = {
  type: "function",
  function: {
    name: "add",
    description: "Add two numbers",
    parameters: {
      type: "object",
      properties: { a: { type: "integer" }, b: { type: "integer" } },
      required: ["a", "b"],
    },
  },
};

describe("qwen3-vl-instruct", () => {
  const instruct = (...messages: PromptMessage[]): string => render("qwen3-vl-instruct", messages);

  test("renders a system text and a question", () => {
    expect(instruct(system("You are a helpful assistant."), user("Hello, how are you?"))).toBe(
      "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\nHello, how are you?<|im_end|>\n" +
        "<|im_start|>assistant\n",
    );
  });

  test("leaves a last answer open, with thoughts inside its text", () => {
    const begun = "abc<think>To make this story interesting, I will speak in poetry.</think>";
    expect(instruct(user("Tell me a story in two sentences."), assistant(begun))).toBe(
      `<|im_start|>user\nTell me a story in two sentences.<|im_end|>\n<|im_start|>assistant\n${begun}`,
    );
  });

  test("renders calls behind a text, and results side by side", () => {
    const calls = [call("add", { a: 2, b: 3 }), call("multiply", { x: 4, y: 5 })];
    expect(
      render(
        "qwen3-vl-instruct",
        [
          system("You are a helpful assistant with access to tools."),
          user("Call two tools for me: add and multiply."),
          assistant("Sure, I'll call both tools for you.", { tool_calls: calls }),
          tool("5", "add"),
          tool("20", "multiply"),
          user("Thanks! What are the results?"),
        ],
        { tools: [ADD] },
      ),
    ).toBe(`<|im_start|>system
You are a helpful assistant with access to tools.

# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{"type": "function", "function": {"name": "add", "description": "Add two numbers", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}}}
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call><|im_end|>
<|im_start|>user
Call two tools for me: add and multiply.<|im_end|>
<|im_start|>assistant
Sure, I'll call both tools for you.
<tool_call>
{"name": "add", "arguments": {"a": 2, "b": 3}}
</tool_call>
<tool_call>
{"name": "multiply", "arguments": {"x": 4, "y": 5}}
</tool_call><|im_end|>
<|im_start|>user
<tool_response>
5
</tool_response>
<tool_response>
20
</tool_response><|im_end|>
<|im_start|>user
Thanks! What are the results?<|im_end|>
<|im_start|>assistant
`);
  });

  test("begins a thought if asked to think", () => {
    expect(render("qwen3-vl-instruct", [user("Hello")], { think: true })).toEndWith("<|im_start|>assistant\n<think>\n");
  });
});

describe("qwen3-vl-thinking", () => {
  test("begins a thought unless told not to", () => {
    const question = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n";
    expect(render("qwen3-vl-thinking", [user("Hello")])).toBe(`${question}<think>\n`);
    expect(render("qwen3-vl-thinking", [user("Hello")], { think: false })).toBe(question);
  });

  test("drops thoughts before the last question, and keeps those behind it", () => {
    const thinking = "To make this story interesting, I will speak in poetry.";
    const before = render("qwen3-vl-thinking", [user("Tell me."), assistant("abc", { thinking }), user("And?")]);
    expect(before).toContain("<|im_start|>assistant\nabc<|im_end|>\n");
    const calls = [call("add", { a: 2, b: 3 })];
    const behind = [user("Tell me."), assistant("abc", { thinking, tool_calls: calls }), tool("5", "add")];
    expect(render("qwen3-vl-thinking", behind)).toContain(
      `<|im_start|>assistant\n<think>\n${thinking}\n</think>\n\nabc\n<tool_call>\n{"name": "add", "arguments": {"a": 2, "b": 3}}\n</tool_call><|im_end|>`,
    );
  });
});

const TAGS_INSTRUCTION = `If you choose to call a function ONLY reply in the following format with NO suffix:

<tool_call>
<function=example_function_name>
<parameter=example_parameter_1>
value_1
</parameter>
<parameter=example_parameter_2>
This is the value for the second parameter
that can span
multiple lines
</parameter>
</function>
</tool_call>

<IMPORTANT>
Reminder:
- Function calls MUST follow the specified format: an inner <function=...></function> block must be nested within <tool_call></tool_call> XML tags
- Required parameters MUST be specified
- You may provide optional reasoning for your function call in natural language BEFORE the function call, but NOT after
- If there is no function call available, answer the question like normal with your current knowledge and do not tell the user about function calls
</IMPORTANT>`;

describe("qwen3-coder", () => {
  test("renders tools with their fields as tags, and a call behind a text with its result", () => {
    const unit = { type: "string", enum: ["celsius", "fahrenheit"], description: "The unit of temperature" };
    const weather: PromptTool = {
      type: "function",
      function: {
        name: "get_weather",
        description: "Get the current weather in a given location",
        parameters: { type: "object", required: ["unit"], properties: { unit } },
      },
    };
    const messages = [
      system("You are a helpful assistant with access to tools."),
      user("What is the weather like in San Francisco?"),
      assistant("I'll check the weather in San Francisco for you.", {
        tool_calls: [call("get_weather", { unit: "fahrenheit" })],
      }),
      tool('{"location": "San Francisco, CA"}', "get_weather"),
      user("That sounds nice! What about New York?"),
    ];
    expect(render("qwen3-coder", messages, { tools: [weather] })).toBe(`<|im_start|>system
You are a helpful assistant with access to tools.

# Tools

You have access to the following functions:

<tools>
<function>
<name>get_weather</name>
<description>Get the current weather in a given location</description>
<parameters>
<parameter>
<name>unit</name>
<type>string</type>
<description>The unit of temperature</description>
<enum>["celsius","fahrenheit"]</enum>
</parameter>
<required>["unit"]</required>
</parameters>
</function>
</tools>

${TAGS_INSTRUCTION}<|im_end|>
<|im_start|>user
What is the weather like in San Francisco?<|im_end|>
<|im_start|>assistant
I'll check the weather in San Francisco for you.

<tool_call>
<function=get_weather>
<parameter=unit>
fahrenheit
</parameter>
</function>
</tool_call><|im_end|>
<|im_start|>user
<tool_response>
{"location": "San Francisco, CA"}
</tool_response>
<|im_end|>
<|im_start|>user
That sounds nice! What about New York?<|im_end|>
<|im_start|>assistant
`);
  });

  test("renders a call without text and with an object as argument", () => {
    const messages = [user("call tool"), assistant("", { tool_calls: [call("echo", { payload: { foo: "bar" } })] })];
    expect(render("qwen3-coder", [...messages, tool("x", "echo")])).toContain(
      '<|im_start|>assistant\n\n<tool_call>\n<function=echo>\n<parameter=payload>\n{"foo":"bar"}\n</parameter>\n</function>\n</tool_call><|im_end|>',
    );
  });
});

describe("qwen3.5", () => {
  test("renders the system text behind the tools, and calls and results side by side", () => {
    const text = render(
      "qwen3.5",
      [
        system("You are a helpful assistant."),
        user("Run add and multiply."),
        assistant("I'll run both now.", {
          thinking: "Need to call add and multiply.",
          tool_calls: [call("add", { a: 2, b: 3 }), call("multiply", { x: 4, y: 5 })],
        }),
        tool("5", "add"),
        tool("20", "multiply"),
        user("Summarize the results."),
      ],
      { tools: [ADD] },
    );
    expect(text).toContain(`\n</tools>\n\n${TAGS_INSTRUCTION}\n\nYou are a helpful assistant.<|im_end|>\n`);
    expect(text).not.toContain("Need to call add and multiply.");
    expect(text).toContain(
      "<|im_start|>assistant\nI'll run both now.\n\n<tool_call>\n<function=add>\n<parameter=a>\n2\n</parameter>\n" +
        "<parameter=b>\n3\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=multiply>\n<parameter=x>\n4\n" +
        "</parameter>\n<parameter=y>\n5\n</parameter>\n</function>\n</tool_call><|im_end|>\n",
    );
    expect(text).toContain(
      "<|im_start|>user\n<tool_response>\n5\n</tool_response>\n<tool_response>\n20\n</tool_response><|im_end|>\n",
    );
    expect(text).toEndWith("<|im_start|>assistant\n<think>\n");
  });

  test("keeps thoughts behind the last question, and renders an empty thought with thinking off", () => {
    const thinking = "Need weather before giving advice.";
    const calls = [call("get_weather", { location: "Paris" })];
    const messages = [user("Plan a picnic."), assistant("Checking weather first.", { thinking, tool_calls: calls })];
    expect(render("qwen3.5", [...messages, tool("22C", "get_weather")])).toContain(
      `<|im_start|>assistant\n<think>\n${thinking}\n</think>\n\nChecking weather first.\n\n<tool_call>\n<function=get_weather>\n` +
        "<parameter=location>\nParis\n</parameter>\n</function>\n</tool_call><|im_end|>",
    );
    expect(render("qwen3.5", [user("hello")], { think: false })).toEndWith(
      "<|im_start|>assistant\n<think>\n\n</think>\n\n",
    );
  });
});

describe("names of a model's configuration", () => {
  test("take precedence over its templates, except a TEMPLATE from create", () => {
    const jinja = "{{ messages[0].content }}";
    const hi = { messages: [user("hi")], now };
    expect(renderChat(choosePrompt({ jinja, go: "{{ .Prompt }}", renderer: "qwen3-vl-instruct" }), hi)).toContain(
      "im_start",
    );
    expect(
      renderChat(choosePrompt({ go: "[{{ .Prompt }}]", prefersGo: true, renderer: "qwen3-vl-instruct" }), hi),
    ).toBe("[hi]");
    expect(renderChat(choosePrompt({ jinja, renderer: "from-the-future" }), hi)).toBe("hi");
  });

  test("refuse a model whose only renderer is unknown", () => {
    for (const go of [undefined, "{{ .Prompt }}"]) {
      expect(() => choosePrompt({ go, renderer: "from-the-future" })).toThrow(
        "the renderer 'from-the-future', which is not known here",
      );
    }
  });

  test("set capabilities and the format of calls and thoughts by the parser", () => {
    const prompt = choosePrompt({ renderer: "qwen3-vl-instruct" });
    expect(templateFacts(prompt, "qwen3-vl-instruct")).toMatchObject({
      capabilities: { tools: true, thinking: false, insert: false },
      format: "hermes",
    });
    expect(templateFacts(prompt, "qwen3-vl-thinking").thinking).toEqual({ open: "<think>", close: "</think>" });
    expect(templateFacts(prompt, "passthrough").capabilities).toEqual({ tools: false, thinking: false, insert: false });
    expect(templateFacts(prompt, "from-the-future").capabilities.tools).toBe(true);
  });

  test("tell small and large gemma4 apart by the model's name, or else its size", () => {
    const of = (name: string, size?: string): string | undefined => rendererOf("gemma4", { name, size });
    expect(of("gemma4:e4b")).toBe("gemma4-small");
    expect(of("gemma4:26b-a4b-it-q4_K_M")).toBe("gemma4-large");
    expect(of("hf.co/someone/Gemma-4-E2B:latest", "31B")).toBe("gemma4-small");
    expect(of("mine:latest", "25.2B")).toBe("gemma4-large");
    expect(of("mine:latest", "7.9B")).toBe("gemma4-small");
    expect(of("mine:latest", "999M")).toBe("gemma4-small");
    expect(of("mine:latest")).toBe("gemma4-small");
    expect(rendererOf("qwen3.5", { name: "gemma4:31b" })).toBe("qwen3.5");
  });
});

/**
 * For each renderer `turns`: a system text, calls, results, thinking; `quiet`: a question without thinking; `tools`: a
 * question with tools. named-reference.test.ts checks them for models with a published template.
 */
describe("every renderer", () => {
  const golden: Record<string, Record<"turns" | "quiet" | "tools", string>> = JSON.parse(
    readFileSync(join(import.meta.dir, "golden/renderers.json"), "utf8"),
  );
  const day = new Date(2026, 10, 22);
  const turns = [
    system("Be brief."),
    user("Oslo?"),
    assistant("", { thinking: "Look.", tool_calls: [{ id: "c1", ...call("look", { city: "Oslo", days: 2 }) }] }),
    { role: "tool", content: "4 <b>", tool_call_id: "c1" },
    assistant("Cold."),
    user("And Bergen?"),
    assistant("Wait.", {
      thinking: "Again.",
      tool_calls: [
        { id: "c2", ...call("look", { city: "Bergen" }) },
        { id: "c3", ...call("sum", { of: [1, true] }) },
      ],
    }),
    { role: "tool", content: "7", tool_call_id: "c2" },
    { role: "tool", content: "2", tool_call_id: "c3" },
  ];

  for (const renderer of RENDERERS) {
    test(renderer, () => {
      const prompt = choosePrompt({ renderer, tokens: { bos: "<bos>" } });
      const tools = CONVERSATIONS[3]!.context["tools"] as PromptTool[]; // the conversation about tools
      expect({
        turns: renderChat(prompt, { messages: turns, think: true, now: day }),
        quiet: renderChat(prompt, { messages: [user("Hi")], think: false, now: day }),
        tools: renderChat(prompt, { messages: [user("Hi")], tools, now: day }),
      }).toEqual(golden[renderer]!);
    });
  }

  test("renders a conversation of 2,001 messages", () => {
    const turn = (id: string): PromptMessage[] => [
      user("question"),
      assistant("", { tool_calls: [{ id, ...call("look", { city: "Oslo" }) }] }),
      { role: "tool", content: "4", tool_call_id: id },
      assistant("answer"),
    ];
    const messages = [...Array.from({ length: 500 }, (_, i) => turn(`c${i}`)).flat(), user("end")];
    for (const renderer of RENDERERS) {
      expect(renderChat(choosePrompt({ renderer }), { messages, now: day })).toContain("end");
    }
  });
});
