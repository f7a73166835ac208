/** Adapting a conversation that a chat template cannot render as it is. */
import { describe, expect, test } from "bun:test";
import { AppError } from "../../../../src/base/errors.ts";
import { parseJinja } from "../../../../src/engine/text/template/jinja.ts";
import type { PromptMessage, PromptTool } from "../../../../src/engine/text/template/messages.ts";
import { choosePrompt, renderChat } from "../../../../src/engine/text/template/prompt.ts";

const now = new Date(Date.UTC(2026, 10, 22, 9, 5, 7));
const user = (content: string): PromptMessage => ({ role: "user", content });
const system = (content: string): PromptMessage => ({ role: "system", content });
const call = (name: string, id: string) => ({ id, function: { name, arguments: {} } });
const PLAIN = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}";

function render(jinja: string, messages: readonly PromptMessage[], more: object = {}): string {
  return renderChat(choosePrompt({ jinja }), { messages, now, ...more });
}

const jinja = (source: string, values: Record<string, unknown> = {}): string => parseJinja(source).render(values, now);

describe("a system message", () => {
  const refusing =
    "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}" + PLAIN;
  const silent = "{% for m in messages if m.role != 'system' %}[{{ m.role }}]{{ m.content }}{% endfor %}";

  test("is kept if the template renders it", () => {
    expect(render(PLAIN, [system("Be brief."), user("hi")])).toBe("[system]Be brief.[user]hi");
  });

  test("is put in front of the user's text if the template refuses or drops it", () => {
    for (const template of [refusing, silent]) {
      expect(render(template, [system("Be brief."), user("hi")])).toBe("[user]Be brief.\nhi");
      expect(render(template, [system("a"), system("b"), user("hi"), user("ho")])).toBe("[user]a\nb\nhi[user]ho");
      expect(render(template, [system("Be brief.")])).toBe("[user]Be brief.");
      expect(render(template, [user("hi")])).toBe("[user]hi");
    }
  });

  test("does not hide another error of the template", () => {
    const never = "{{ raise_exception('never') }}";
    expect(() => render(never, [system("a"), user("hi")])).toThrow(new AppError("bad_request", "never"));
  });
});

test("several calls in a message become several messages if the template allows one per message", () => {
  const single =
    "{% for m in messages %}{% if m.tool_calls %}{% if m.tool_calls | length != 1 %}{{ raise_exception('single') }}" +
    "{% endif %}<{{ m.content }}{{ m.tool_calls[0].function.name }}>{% else %}[{{ m.role }}]{{ m.content }}{% endif %}{% endfor %}";
  const messages: PromptMessage[] = [
    user("q"),
    { role: "assistant", content: "so: ", tool_calls: [call("a", "1"), call("b", "2")] },
    { role: "tool", content: "B", tool_call_id: "2" },
    { role: "tool", content: "A", tool_call_id: "1" },
  ];
  expect(render(single, messages)).toBe("[user]q<so: a>[tool]A<b>[tool]B");
});

test("a template that loops over its tools renders without tools", () => {
  const looping = "{% if tools is defined %}{% for t in tools %}{{ t.function.name }}{% endfor %}{% endif %}" + PLAIN;
  expect(render(looping, [user("hi")])).toBe("[user]hi");
  const tools: PromptTool[] = [{ type: "function", function: { name: "sum" } }];
  expect(render(looping, [user("hi")], { tools })).toBe("sum[user]hi");
});

test("a level of thinking becomes the nearest level that the template names", () => {
  const levels = "{% if reasoning_effort not in ['low', 'medium', 'xhigh'] %}?{% endif %}{{ reasoning_effort }}";
  expect(render(levels, [user("hi")], { think: "high" })).toBe("xhigh");
  expect(render(levels, [user("hi")], { think: "low" })).toBe("low");
  expect(render(levels, [user("hi")], { think: "max" })).toBe("xhigh");
  const few =
    "{% if reasoning_effort not in ('none', \"high\") %}{{ raise_exception('no') }}{% endif %}{{ reasoning_effort }}";
  for (const think of ["low", "medium", "high", "max"] as const)
    expect(render(few, [user("hi")], { think })).toBe("high");
  expect(render("{{ reasoning_effort }}/'high'/'xhigh'", [user("hi")], { think: "high" })).toBe("high/'high'/'xhigh'");
});

describe("a template that", () => {
  const CALLS = "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ HERE }}{% endfor %}{% endfor %}";
  const calls = [{ function: { name: "f", arguments: { a: 1 } } }];
  const called: PromptMessage[] = [
    user("hi"),
    { role: "assistant", content: "text", thinking: "thought", tool_calls: calls },
    { role: "tool", content: "1", tool_name: "f" },
  ];

  test("concatenates a call's arguments gets them as JSON", () => {
    const source = CALLS.replace("HERE", "'[' + c.function.arguments + ']'");
    expect(render(source, called)).toBe('[{"a":1}]');
  });

  test("reads fields of a call's arguments gets an object", () => {
    const source = CALLS.replace("HERE", "c.function.arguments.a");
    expect(render(source, called)).toBe("1");
  });

  test("refuses thoughts beside text gets both as one text", () => {
    const source =
      "{% for m in messages %}{% if m.content and m.thinking %}{{ raise_exception('both') }}{% endif %}" +
      "{{ m.role }}:{{ m.thinking or m.content }};{% endfor %}";
    expect(render(source, called)).toBe("user:hi;assistant:thought\n\ntext;tool:1;");
  });
});

test("the variable xml_tools of SmolLM3 has the tools, and is empty without tools", () => {
  const tools = [{ type: "function", function: { name: "now" } }];
  const source = "{% if xml_tools %}{{ xml_tools[0].function.name }}{% else %}none{% endif %}";
  expect(render(source, [user("hi")], { tools })).toBe("now");
  expect(render(source, [user("hi")])).toBe("none");
});

test("the variables functions and datetime of FireFunction have the tools and the time", () => {
  const tools: PromptTool[] = [{ type: "function", function: { name: "sum" } }];
  const text = render("{{ functions }} {{ datetime }}", [user("hi")], { tools });
  expect(text).toBe(`${JSON.stringify(tools, null, 2)} Nov 22 2026 09:05:07 GMT`);
});

describe("Jinja in Python's semantics", () => {
  test("keeps None as a given argument", () => {
    expect(jinja("{% macro f(v) %}{{ v is none }} {{ v is sequence }}{% endmacro %}{{ f(none) }}")).toBe("True False");
    expect(jinja("{% macro f(v=3) %}{{ v }}{% endmacro %}{{ f(none) }}{{ f() }}")).toBe("None3");
    expect(jinja("{{ {'a': none}.get('a', 1) }}{{ {}.get('a', 1) }}")).toBe("None1");
  });

  test("lets a chat's template pop items of its own list, and of no other", () => {
    const chat = (source: string): string => render(source, [user("hi")]);
    expect(chat("{% set l = [1, 2, 3] %}{{ l.pop(0) }}{{ l.pop() }}{{ l }}")).toBe("13[2]");
    expect(() => jinja("{% set l = [1] %}{{ l.pop() }}")).toThrow("no attribute 'pop'");
    expect(() => chat("{% set l = [] %}{{ l.pop() }}")).toThrow();
    expect(() => chat("{{ messages.pop() }}")).toThrow();
  });

  test("gives no items for select, reject and map of None", () => {
    const source =
      "{{ x | selectattr('a') | list }}{{ x | rejectattr('a') | list }}{{ x | select | list }}{{ x | reject | list }}" +
      "{{ x | map('upper') | list }}";
    expect(jinja(source, { x: null })).toBe("[][][][][]");
    expect(() => jinja("{% for a in x %}{% endfor %}", { x: null })).toThrow("not iterable");
  });

  test("lets a template append to its own list, and to no other", () => {
    expect(jinja("{% set l = [1] %}{% set _ = l.append('b') %}{{ l }}{{ l.append(none) }}{{ l | length }}")).toBe(
      "[1, 'b']None3",
    );
    const ns = "{% set ns = namespace(l=[]) %}{% for m in x %}{% set _ = ns.l.append(m) %}{% endfor %}{{ ns.l }}";
    expect(jinja(ns, { x: [1, 2] })).toBe("[1, 2]");
    expect(() => jinja("{{ x.append(1) }}", { x: [] })).toThrow("only a list that the template made itself");
  });

  test("refuses a list that contains itself or grows without end", () => {
    expect(() => jinja("{% set l = [] %}{{ l.append(l) }}")).toThrow("an item of itself");
    expect(() => jinja("{% set l = [] %}{{ l.append([{'a': l}]) }}")).toThrow("an item of itself");
    expect(() => jinja("{% set ns = namespace(l=[]) %}{{ ns.l.append(ns) }}")).toThrow("an item of itself");
    expect(() => jinja("{% set l = [1] %}{% for a in l %}{{ l.append(1) }}{% endfor %}")).toThrow(AppError);
    const deep =
      "{% set ns = namespace(l=[]) %}{% for i in range(5000) %}{% set k = [] %}{{ k.append(ns.l) }}" +
      "{% set ns.l = k %}{% endfor %}";
    expect(() => jinja(deep)).toThrow("nested deeper");
  });
});

describe("calls", () => {
  const calling = (content: string): PromptMessage[] => [
    user("q"),
    { role: "assistant", content, tool_calls: [call("a", "1")] },
  ];

  test("without text are rendered by a template that expects null as content", () => {
    const strict =
      "{% for m in messages %}{% if m.tool_calls and m.content is none %}<{{ m.tool_calls[0].function.name }}>" +
      "{% elif m.content is not none %}[{{ m.role }}]{{ m.content }}{% endif %}{% endfor %}";
    expect(render(strict, calling(""))).toBe("[user]q<a>");
    expect(render(strict, calling("so"))).toBe("[user]q[assistant]so<a>");
    const texts = strict.replace("function.name }}", "function.name + m.tool_calls[0].function.arguments }}");
    expect(render(texts, calling(""))).toBe("[user]q<a{}>");
  });

  test("with empty text are rendered with the text by other templates", () => {
    const plain =
      "{% for m in messages %}[{{ m.content }}]{% if m.tool_calls %}<{{ m.tool_calls[0].function.name }}>{% endif %}{% endfor %}";
    expect(render(plain, calling(""))).toBe("[q][]<a>");
  });
});

describe("tools", () => {
  const tool = (parameters?: object): PromptTool => ({
    type: "function",
    function: { name: "f", ...(parameters ? { parameters } : {}) },
  });
  const shown = (jinja: string, parameters?: object): string => render(jinja, [], { tools: [tool(parameters)] });

  test("without parameters get empty ones only if the template needs them", () => {
    const needing = "{% for t in tools %}{{ t.function.parameters | tojson }}{% endfor %}";
    expect(shown(needing)).toBe('{"type": "object", "properties": {}}');
    const fine = "{% for t in tools %}{{ t.function | tojson }}{% endfor %}";
    expect(shown(fine)).toBe('{"name": "f"}');
  });

  test("get one type and a description per value only if the template needs them", () => {
    const macro =
      "{% macro kind(s) %}{% if s.type is string %}{{ s.type }}{% else %}{{ kind(s) }}{% endif %}{% endmacro %}" +
      "{% for key, s in tools[0].function.parameters.properties.items() %}{{ key }}: {{ kind(s) }}{{ '|' + s.description }} {% endfor %}";
    const a = { type: ["null", "string"] };
    expect(shown(macro, { type: "object", properties: { a, b: { type: "integer", description: "B" } } })).toBe(
      "a: string| b: integer|B ",
    );
    const tuple = "{{ tools[0].function.parameters.properties.a['items'].get('type', '?') }}";
    expect(shown(tuple, { type: "object", properties: { a: { type: "array", prefixItems: [], items: false } } })).toBe(
      "?",
    );
  });

  test("give the template's first error if it refuses them in any form", () => {
    expect(() => shown("{{ raise_exception('no tools') }}", {})).toThrow(new AppError("bad_request", "no tools"));
  });
});
