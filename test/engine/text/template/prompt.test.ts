/** Chooses between a model's templates, and renders a conversation in each style of template. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { AppError } from "../../../../src/base/errors.ts";
import { parseGoPrompt, thinkingTags, toolCallTag } from "../../../../src/engine/text/template/go-prompt.ts";
import {
  capabilitiesOf,
  choosePrompt,
  type PromptMessage,
  renderChat,
  renderGenerate,
} from "../../../../src/engine/text/template/prompt.ts";

const now = new Date(2026, 10, 21);
const hearth = readFileSync(join(import.meta.dir, "golden/jinja/hearth.jinja"), "utf8");
const goSource = (name: string): string => readFileSync(join(import.meta.dir, `golden/go/${name}.gotmpl`), "utf8");
const user = (content: string): PromptMessage => ({ role: "user", content });
const assistant = (content: string): PromptMessage => ({ role: "assistant", content });
const tools = [{ type: "function", function: { name: "sum", description: "Adds", parameters: { type: "object" } } }];

describe("the choice of a template", () => {
  const chatmlJinja = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}";

  test("takes a model's only template, and without one the prompt is the text itself", () => {
    expect(choosePrompt({ jinja: chatmlJinja }).kind).toBe("jinja");
    expect(choosePrompt({ go: "{{ .Prompt }}" }).kind).toBe("go");
    expect(renderChat(choosePrompt({}), { messages: [user("hello")], now })).toBe("hello");
  });

  test("prefers the Go template to a chat template with no more capabilities", () => {
    expect(choosePrompt({ jinja: chatmlJinja, go: goSource("chatml") }).kind).toBe("go");
    expect(choosePrompt({ jinja: hearth, go: goSource("qwen-tools") }).kind).toBe("go");
  });

  test("prefers a chat template with tools to a Go template without", () => {
    expect(choosePrompt({ jinja: hearth, go: goSource("chatml") }).kind).toBe("jinja");
  });

  test("prefers, with tools in both, the template that also takes results", () => {
    const listsOnly = "{{ range .Messages }}{{ .Content }}{{ $.Tools }}{{ end }}";
    expect(choosePrompt({ jinja: hearth, go: listsOnly }).kind).toBe("jinja");
    expect(choosePrompt({ jinja: "{{ tools }}", go: listsOnly }).kind).toBe("go");
  });

  test("prefers results of tools to thinking", () => {
    const thinkingOnly = "<think></think>{{ tools }}";
    expect(choosePrompt({ jinja: thinkingOnly, go: goSource("mistral-tools") }).kind).toBe("go");
  });

  test("follows a stated preference", () => {
    expect(choosePrompt({ jinja: hearth, go: goSource("chatml"), prefersGo: true }).kind).toBe("go");
    expect(choosePrompt({ jinja: chatmlJinja, go: goSource("chatml"), prefersGo: false }).kind).toBe("jinja");
  });

  test("is an error with its place for a template that does not parse", () => {
    expect(() => choosePrompt({ go: "{{ if .Prompt }}\n{{ .Prompt }" })).toThrow(
      'template:2:12: unexpected "}" in operand',
    );
  });
});

describe("capabilities", () => {
  test("follow the fields that a Go template uses", () => {
    const of = (name: string) => capabilitiesOf(choosePrompt({ go: goSource(name) }));
    expect(of("chatml")).toEqual({ tools: false, thinking: false, insert: false });
    expect(of("qwen-tools")).toEqual({ tools: true, thinking: true, insert: false });
    expect(of("codellama-fim")).toEqual({ tools: false, thinking: false, insert: true });
  });

  test("follow the text of a chat template", () => {
    const of = (jinja: string) => capabilitiesOf(choosePrompt({ jinja }));
    expect(of(hearth)).toEqual({ tools: true, thinking: false, insert: false });
    expect(of("<think></think>").thinking).toBe(true);
    expect(of("{{ content.split('</think>')[-1] }}").thinking).toBe(true);
    expect(of("{{ content.split('</think>')[-1] }}{{ reasoning_content }}").thinking).toBe(false);
  });

  test("include the tags around past thoughts, and the tag in front of past calls", () => {
    expect(thinkingTags(parseGoPrompt(goSource("qwen-tools")))).toEqual({ open: "<think>", close: "</think>" });
    expect(thinkingTags(parseGoPrompt(goSource("llama3")))).toBeUndefined();
    expect(toolCallTag(parseGoPrompt(goSource("qwen-tools")))).toBe("<tool_call>");
    expect(toolCallTag(parseGoPrompt(goSource("mistral-tools")))).toBe("[TOOL_CALLS] [");
    expect(toolCallTag(parseGoPrompt(goSource("llama31-tools")))).toBe("{");
    expect(toolCallTag(parseGoPrompt(goSource("chatml")))).toBe("{");
  });
});

describe("a chat through the embedded model's template", () => {
  const prompt = choosePrompt({ jinja: hearth });

  test("opens the model's turn", () => {
    expect(renderChat(prompt, { messages: [{ role: "system", content: "Be kind." }, user("Hi")], now })).toBe(
      "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    );
  });

  test("renders tools, calls and results", () => {
    const messages: PromptMessage[] = [
      user("1+2?"),
      { ...assistant(""), tool_calls: [{ function: { index: 0, name: "sum", arguments: { b: 2, a: 1 } } }] },
      { role: "tool", content: "3", tool_name: "sum" },
    ];
    const text = renderChat(prompt, { messages, tools, now });
    expect(text).toContain('\n<tools>\n{"type": "function", "function": {"name": "sum", "description": "Adds"');
    expect(text).toEndWith(
      '<|im_start|>assistant\n<tool_call>\n{"name": "sum", "arguments": {"b": 2, "a": 1}}\n</tool_call><|im_end|>\n' +
        "<|im_start|>user\n<tool_response>\n3\n</tool_response><|im_end|>\n<|im_start|>assistant\n",
    );
  });

  test("leaves a last message of the model open", () => {
    expect(renderChat(prompt, { messages: [user("Count"), assistant("One, two,")], now })).toEndWith(
      "<|im_start|>assistant\nOne, two,",
    );
  });

  test("does not end inside a call", () => {
    const calling = { ...assistant(""), tool_calls: [{ function: { name: "sum", arguments: {} } }] };
    expect(renderChat(prompt, { messages: [user("1+2?"), calling], tools, now })).toEndWith(
      "</tool_call><|im_end|>\n<|im_start|>assistant\n",
    );
  });

  test("ends behind the last message without a generation prompt", () => {
    expect(renderChat(prompt, { messages: [user("Hi")], addGenerationPrompt: false, now })).toBe(
      "<|im_start|>user\nHi<|im_end|>\n",
    );
  });
});

describe("a chat template", () => {
  test("has the special tokens", () => {
    const jinja = "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}";
    const prompt = choosePrompt({ jinja, tokens: { bos: "<s>", eos: "</s>" } });
    expect(renderChat(prompt, { messages: [user("x")], now })).toBe("<s>x</s>");
  });

  test("has enable_thinking and reasoning_effort", () => {
    const jinja = "{{ enable_thinking is defined }} {{ enable_thinking }} {{ reasoning_effort }}";
    const prompt = choosePrompt({ jinja });
    const render = (think?: boolean | string) =>
      renderChat(prompt, { messages: [], now, ...(think === undefined ? {} : { think }) });
    expect(render()).toBe("False  ");
    expect(render(false)).toBe("True False ");
    expect(render("high")).toBe("True True high");
  });

  test("has thinking and thinking_effort if it uses these names, and neither by default", () => {
    const jinja =
      "{% if thinking is undefined %}{% set thinking = 'own' %}{% endif %}{{ thinking }} {{ thinking_effort }}" +
      "{% if thinking_effort not in ['low', 'high', 'max'] %}?{% endif %}";
    const thinks = [undefined, true, false, "medium"] as const;
    const rendered = thinks.map((think) =>
      renderChat(choosePrompt({ jinja }), { messages: [], now, ...(think === undefined ? {} : { think }) }),
    );
    expect(rendered).toEqual(["own ?", "own ?", "False ?", "own high"]);
  });

  test("has no bytes of images, and the tool's name in results", () => {
    const jinja = "{{ messages[0] | tojson }}";
    const messages = [{ role: "tool", content: "c", tool_name: "sum", images: [new Uint8Array(9)] }];
    expect(renderChat(choosePrompt({ jinja }), { messages, now })).toBe(
      '{"role": "tool", "content": "c", "name": "sum"}',
    );
  });

  test("gives its own error text if it refuses a conversation", () => {
    const prompt = choosePrompt({ jinja: "{{ raise_exception('roles must alternate') }}" });
    expect(() => renderChat(prompt, { messages: [], now })).toThrow(
      new AppError("bad_request", "roles must alternate"),
    );
  });
});

describe("one question", () => {
  test("is a chat of system, history and prompt", () => {
    const prompt = choosePrompt({ go: goSource("chatml") });
    const text = renderGenerate(prompt, { system: "S", history: [user("a"), assistant("b")], prompt: "P", now });
    expect(text.replaceAll(/<\|im_(start|end)\|>\n?/g, "|")).toBe(
      "|system\nS||user\na||assistant\nb||user\nP||assistant",
    );
  });

  test("can have the beginning of its answer", () => {
    const request = { prompt: "P", response: "Sure:", now };
    expect(renderGenerate(choosePrompt({ go: goSource("vicuna") }), request)).toBe("USER: P\nASSISTANT: Sure:");
    expect(renderGenerate(choosePrompt({ jinja: hearth }), request)).toEndWith("<|im_start|>assistant\nSure:");
  });

  test("with a suffix needs a template with a place for it", () => {
    const request = { prompt: "def f(", suffix: "return x", now };
    expect(renderGenerate(choosePrompt({ go: goSource("codellama-fim") }), request)).toBe(
      "<PRE> def f( <SUF>return x <MID>",
    );
    for (const sources of [{ go: goSource("chatml") }, { jinja: hearth }]) {
      expect(() => renderGenerate(choosePrompt(sources), request)).toThrow("does not support insert");
    }
  });
});

test("neighbouring messages of one role are one message in a Go template, with calls and thoughts kept", () => {
  const go =
    "{{ range .Messages }}{{ .Role }}({{ .Thinking }}|{{ .Content }}" +
    "{{ range .ToolCalls }}|{{ .Function.Name }}{{ end }}){{ end }}";
  const call = (name: string) => ({ function: { name, arguments: {} } });
  const messages = [
    user("both"),
    { ...assistant("first"), thinking: "one", tool_calls: [call("sum")] },
    { ...assistant("then"), thinking: "two", tool_calls: [call("product")] },
    { role: "tool", content: "3" },
    { role: "tool", content: "2" },
  ];
  const text = "user(|both)assistant(one\n\ntwo|first\n\nthen|sum|product)tool(|3)tool(|2)";
  expect(renderChat(choosePrompt({ go }), { messages, now })).toBe(text);
});

describe("a Go template without messages", () => {
  test("without .Response gets it at its end", () => {
    const prompt = choosePrompt({ go: "[{{ .Prompt }}]" });
    expect(renderChat(prompt, { messages: [user("a"), assistant("b"), user("c")], now })).toBe("[a]b[c]");
  });

  test("ends at .Response in the last turn, and drops the conditions after it", () => {
    const go =
      "{{ if .Prompt }}<{{ .Prompt }}>{{ end }}{{ if .Response }}={{ end }}({{ .Response }}){{ if true }}.{{ end }}!";
    const render = (...messages: PromptMessage[]) => renderChat(choosePrompt({ go }), { messages, now });
    expect(render(user("a"))).toBe("<a>(");
    expect(render(user("a"), assistant("b"))).toBe("<a>=(b");
    expect(render(user("a"), assistant("b"), user("c"))).toBe("<a>=(b).!<c>(");
  });

  test("ends at .Response in both branches of a condition", () => {
    const go =
      "{{ if .System }}{{ .System }}|{{ .Prompt }}>{{ .Response }}.{{ else }}{{ .Prompt }}>{{ .Response }}.{{ end }}!";
    const render = (...messages: PromptMessage[]) => renderChat(choosePrompt({ go }), { messages, now });
    expect(render(user("a"))).toBe("a>");
    expect(render({ role: "system", content: "s" }, user("a"))).toBe("s|a>");
  });
});

test("a request's variables reach a Jinja template, and override the built-in ones", () => {
  const jinja = "{{ flavour.sweet }} {{ enable_thinking }} {{ messages[0].content }}";
  const request = { messages: [{ role: "user", content: "Hi" }], now: new Date(0), think: true };
  const variables = { flavour: { sweet: 3 }, enable_thinking: false };
  expect(renderChat(choosePrompt({ jinja }), { ...request, variables })).toBe("3 False Hi");
  expect(renderChat(choosePrompt({ jinja: "{{ enable_thinking }}" }), request)).toBe("True");
});
