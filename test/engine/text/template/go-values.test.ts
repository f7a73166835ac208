/** Messages and tools as Go templates see them. */
import { expect, test } from "bun:test";
import { parseGoPrompt, renderGoChat } from "../../../../src/engine/text/template/go-prompt.ts";
import type { PromptMessage, PromptTool } from "../../../../src/engine/text/template/messages.ts";

interface Given {
  readonly messages?: readonly PromptMessage[];
  readonly tools?: readonly PromptTool[];
}

const render = (source: string, { messages = [], tools = [] }: Given): string =>
  renderGoChat(parseGoPrompt(`${source}{{ if .Messages }}{{ end }}`), { messages, tools, now: new Date(0) });

const calling = (args: Record<string, unknown>): PromptMessage => ({
  role: "assistant",
  content: "",
  tool_calls: [{ id: "c", function: { name: "f", arguments: args } }],
});

const tool = (properties: unknown): PromptTool => ({
  type: "function",
  function: { name: "f", parameters: { type: "object", properties } },
});

/** `{key: {key: … {}}}`. */
function nested(key: string, depth: number): Record<string, unknown> {
  let value: Record<string, unknown> = {};
  for (let i = 0; i < depth; i++) value = { [key]: value };
  return value;
}

const EVERYTHING = "{{ .Messages }}{{ .Tools }}";

test.each([
  ["arguments", { messages: [calling(nested("a", 300))] }],
  ["items of a property", { tools: [tool({ p: { items: nested("a", 300) } })] }],
  ["properties of a property", { tools: [tool({ p: nested("properties", 3000) })] }],
  [
    "properties of properties",
    { tools: [tool({ p: JSON.parse('{"properties":{"p":'.repeat(3000) + "{}" + "}}".repeat(3000)) })] },
  ],
])("%s nested deeper than 200 are refused as too large", (_, given) => {
  expect(() => render(EVERYTHING, given)).toThrow(
    expect.objectContaining({ code: "too_large", message: "template: value nested deeper than 200" }),
  );
});

test("maps render with keys in the order of their UTF-8 bytes", () => {
  const args = { b: 1, "10": 2, "9": 3, "\u{1f44b}": 4, "\uff5e": { z: 1, "1": 2, A: 3 }, "": 0 };
  const sorted = '{"":0,"10":2,"9":3,"b":1,"\uff5e":{"1":2,"A":3,"z":1},"\u{1f44b}":4}';
  const calls = "{{ range .Messages }}{{ range .ToolCalls }}{{ .Function.Arguments }} {{ json . }}{{ end }}{{ end }}";
  expect(render(calls, { messages: [calling(args)] })).toBe(
    `${sorted} {"id":"c","function":{"index":0,"name":"f","arguments":${sorted}}}`,
  );
  const properties = { b: {}, "10": { type: "string", enum: [{ b: 1, "1": 2 }] }, "9": {} };
  expect(
    render("{{ range .Tools }}{{ .Function.Parameters.Properties }}{{ end }}", { tools: [tool(properties)] }),
  ).toBe('{"10":{"type":"string","enum":[{"1":2,"b":1}]},"9":{},"b":{}}');
});

test("a missing property is an empty one", () => {
  const ask = `{{ range .Tools }}{{ with .Function.Parameters.Properties }}{{ (index . "no").Description }}|{{ .no.Type }}|{{
    len .no.Enum }}|{{ toTypeScriptType .no }}{{ end }}{{ end }}`;
  expect(render(ask, { tools: [tool({ p: { type: "string" } })] })).toBe("||0|any");
});

test("a message equals only itself, and values other than pointers cannot be compared", () => {
  const messages: PromptMessage[] = [calling({}), { role: "user", content: "a" }];
  const same = "{{ eq (index .Messages 0) (index .Messages 0) }}{{ ne (index .Messages 0) (index .Messages 1) }}";
  expect(render(same, { messages })).toBe("truetrue");
  const calls = "{{ $c := index (index .Messages 0).ToolCalls 0 }}{{ eq $c $c }}";
  expect(() => render(calls, { messages })).toThrow("non-comparable type api.ToolCall");
  expect(() => render('{{ eq (index .Messages 0) "a" }}', { messages })).toThrow("incompatible types");
});
