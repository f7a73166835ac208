/** Templates of ours that a configuration names, against what other servers send for the same conversations. */
import { describe, expect, test } from "bun:test";
import { templateFacts } from "../../src/template/facts.ts";
import type { PromptMessage, PromptTool } from "../../src/template/messages.ts";
import { choosePrompt, renderChat } from "../../src/template/prompt.ts";

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

  test("a system text and a question", () => {
    expect(instruct(system("You are a helpful assistant."), user("Hello, how are you?"))).toBe(
      "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\nHello, how are you?<|im_end|>\n" +
        "<|im_start|>assistant\n",
    );
  });

  test("an answer that is to be gone on with, and thoughts that are part of its text", () => {
    const begun = "abc<think>To make this story interesting, I will speak in poetry.</think>";
    expect(instruct(user("Tell me a story in two sentences."), assistant(begun))).toBe(
      `<|im_start|>user\nTell me a story in two sentences.<|im_end|>\n<|im_start|>assistant\n${begun}`,
    );
  });

  test("calls behind a text, results side by side", () => {
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

  test("thinks where it is asked to", () => {
    expect(render("qwen3-vl-instruct", [user("Hello")], { think: true })).toEndWith("<|im_start|>assistant\n<think>\n");
  });
});

describe("qwen3-vl-thinking", () => {
  test("begins to think, unless told not to", () => {
    const question = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n";
    expect(render("qwen3-vl-thinking", [user("Hello")])).toBe(`${question}<think>\n`);
    expect(render("qwen3-vl-thinking", [user("Hello")], { think: false })).toBe(question);
  });

  test("thoughts of answers before the last question are gone, those behind it stay", () => {
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

describe("names of a configuration", () => {
  test("win over what the model brings, except a TEMPLATE that somebody gave it here", () => {
    const jinja = "{{ messages[0].content }}";
    const hi = { messages: [user("hi")], now };
    expect(renderChat(choosePrompt({ jinja, go: "{{ .Prompt }}", renderer: "qwen3-vl-instruct" }), hi)).toContain(
      "im_start",
    );
    expect(
      renderChat(choosePrompt({ go: "[{{ .Prompt }}]", prefersGo: true, renderer: "qwen3-vl-instruct" }), hi),
    ).toBe("[hi]");
    expect(renderChat(choosePrompt({ jinja, renderer: "gemma4" }), hi)).toBe("hi");
  });

  test("a model that has nothing but a name which is not here yet is refused, never prompted barely", () => {
    for (const go of [undefined, "{{ .Prompt }}"]) {
      expect(() => choosePrompt({ go, renderer: "cohere" })).toThrow("the renderer 'cohere', which is not here yet");
    }
  });

  test("a parser says what a model can do, and how its calls and thoughts are read", () => {
    const prompt = choosePrompt({ renderer: "qwen3-vl-instruct" });
    expect(templateFacts(prompt, "qwen3-vl-instruct")).toMatchObject({
      capabilities: { tools: true, thinking: false, insert: false },
      format: "hermes",
    });
    expect(templateFacts(prompt, "qwen3-vl-thinking").thinking).toEqual({ open: "<think>", close: "</think>" });
    expect(templateFacts(prompt, "passthrough").capabilities).toEqual({ tools: false, thinking: false, insert: false });
    expect(templateFacts(prompt, "from-the-future").capabilities.tools).toBe(true);
  });
});
