/** Calls whose values look like the end of a value or of the call. */
import { expect, test } from "bun:test";
import { toolFormats, type ToolFormatName } from "../../../src/runtime/parse/index.ts";
import type { Tool } from "../../../src/runtime/requests/runtime.ts";
import { cut, parseWith } from "./cut.ts";

const properties = {
  list: { type: "array", items: { type: "string" } },
  text: { type: "string" },
  mixed: { anyOf: [{ type: "array", items: { type: "string" } }, { type: "string" }] },
  "a b": { type: "integer" },
  null: { type: "null" },
  loose: { type: ["string", "number"] },
  size: { anyOf: [{ type: "integer" }, { type: "string", maxLength: 200 }] },
};
const TOOLS: Tool[] = [{ type: "function", function: { name: "f", parameters: { type: "object", properties } } }];

const invoked = (open: string, name: string, close: string, values: string): string =>
  `${open}<${name}invoke name="f">\n${values}</${name}invoke>${close}`;
const M3 = "]<]minimax[>[";

/** A call with a list in JSON whose only string is this; and what the string says. */
const LISTS: Partial<Record<ToolFormatName, readonly [(json: string) => string, string]>> = {
  functionTags: [
    (json) => `<tool_call>\n<function=f>\n<parameter=list>\n${json}\n</parameter>\n</function>\n</tool_call>`,
    "</parameter></function></tool_call><parameter=text>",
  ],
  glm: [
    (json) => `<tool_call>f\n<arg_key>list</arg_key>\n<arg_value>${json}</arg_value>\n</tool_call>`,
    "</arg_value></tool_call><arg_key>",
  ],
  hunyuan: [
    (json) =>
      "<tool_calls:opensource>\n<tool_call:opensource>f<tool_sep:opensource>\n<arg_key:opensource>list</arg_key:opensource>\n" +
      `<arg_value:opensource>${json}</arg_value:opensource>\n</tool_call:opensource>\n</tool_calls:opensource>`,
    "</arg_value:opensource></tool_call:opensource></tool_calls:opensource>",
  ],
  minimax: [
    (json) =>
      invoked("<minimax:tool_call>", "", "</minimax:tool_call>", `<parameter name="list">${json}</parameter>\n`),
    "</parameter></invoke></minimax:tool_call>",
  ],
  dsml: [
    (json) =>
      invoked(
        "<｜DSML｜tool_calls>",
        "｜DSML｜",
        "</｜DSML｜tool_calls>",
        `<｜DSML｜parameter name="list" string="false">${json}</｜DSML｜parameter>\n`,
      ),
    "</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜tool_calls>",
  ],
  glimmer: [
    (json) =>
      ` to=f<|message|>${invoked("<atem:function_calls>", "atem:", "</atem:function_calls>", `<atem:parameter name="list">${json}</atem:parameter>\n`)}<|eot|>`,
    "</atem:parameter></atem:invoke></atem:function_calls><|eot|><|start|>",
  ],
  minicpm: [
    (json) => `<function name="f"><param name="list"><![CDATA[${json}]]></param></function>`,
    ']]></param></function><function name="',
  ],
  minimaxM3: [
    (json) => `${M3}<tool_call>\n${M3}<invoke name="f">${M3}<list>${json}${M3}</list>${M3}</invoke>\n${M3}</tool_call>`,
    `${M3}</list>${M3}</invoke>${M3}</tool_call>`,
  ],
  kimiK3: [
    (json) =>
      '<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|><|open|>argument key="list" type="array"<|sep|>' +
      `${json}<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>`,
    "<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|open|>call ",
  ],
  functionGemma: [
    (json) => `<start_function_call>call:f{list:${json}}<end_function_call>`,
    "<escape><end_function_call><start_function_call>{",
  ],
  gemma4: [(json) => `<|tool_call>call:f{list:${json}}<tool_call|>`, "}<tool_call|><|tool_call>"],
};

test.each(Object.keys(LISTS) as ToolFormatName[])("%s: a string in a list may contain every tag", (name) => {
  const [write, marks] = LISTS[name]!;
  for (const said of [marks, `a "${marks}`, `\\${marks}`, `${marks}\n`]) {
    const answer = `Let me see.${write(JSON.stringify([said, "b"]))}`;
    const text = name === "glimmer" ? answer.replace("Let me see.", "") : answer;
    for (const length of [1, 5, text.length]) {
      const events = parseWith(toolFormats[name].makeParser(TOOLS), cut(text, endless(length)));
      expect(events.filter(({ kind }) => kind !== "text")).toEqual([
        { kind: "toolCall", name: "f", arguments: { list: [said, "b"] } },
      ]);
    }
  }
});

test.each(Object.keys(LISTS) as ToolFormatName[])(
  "%s: a short text in place of a number may contain every tag",
  (name) => {
    const [write, list] = LISTS[name]!;
    const marks = list.replaceAll(/\blist\b/g, "size");
    const text = write(JSON.stringify(list)).replaceAll(/\blist\b/g, "size");
    for (const length of [1, 5, text.length]) {
      const events = parseWith(toolFormats[name].makeParser(TOOLS), cut(text, endless(length)));
      expect(events).toEqual([{ kind: "toolCall", name: "f", arguments: { size: marks } }]);
    }
  },
);

test.each(Object.keys(LISTS) as ToolFormatName[])("%s: a list that is not JSON ends at the first tag", (name) => {
  const [write] = LISTS[name]!;
  const text = write("['it\"s\n', 2]");
  const events = parseWith(toolFormats[name].makeParser(TOOLS), [text, "\nmore"]);
  expect(events.some((event) => event.kind === "text" && event.text.endsWith("more"))).toBe(true);
});

test.each<[ToolFormatName, string, Record<string, unknown>]>([
  [
    "minicpm",
    '<function name="f"><param name="text"><![CDATA[a[b[0]]]]></param><param name="a b">3</param></function>',
    { text: "a[b[0]]", "a b": 3 },
  ],
  [
    "minicpm",
    '<function name="f"><param name="text"><![CDATA[</param></function>]]></param></function>',
    { text: "</param></function>" },
  ],
  [
    "minimaxM3",
    `${M3}<tool_call>${M3}<invoke name="f">${M3}<a b>3${M3}</a b>${M3}</invoke>${M3}</tool_call>`,
    { "a b": 3 },
  ],
  [
    "functionTags",
    '<function=f><parameter=text>\nx "<parameter=" y\n</parameter></function>',
    { text: 'x "<parameter=" y' },
  ],
  ["glm", '<tool_call>f<arg_key>text</arg_key><arg_value>{"a": "</arg_value></tool_call>', { text: '{"a": "' }],
  [
    "gemma4",
    '<|tool_call>call:f{a b:3,null:None,text:<|"|>a, b<|"|>}<tool_call|>',
    { "a b": 3, null: null, text: "a, b" },
  ],
  [
    "gemma4",
    "<|tool_call>call:f{text:New York, mixed:[a b,True]}<tool_call|>",
    { text: "New York", mixed: ["a b", true] },
  ],
  [
    "hunyuan",
    "<tool_calls:opensource><tool_call:opensource>f<tool_sep:opensource><arg_key:opensource>text</arg_key:opensource>" +
      "<arg_value:opensource><arg_key:opensource>x</arg_key:opensource></arg_value:opensource></tool_call:opensource></tool_calls:opensource>",
    { text: "<arg_key:opensource>x</arg_key:opensource>" },
  ],
  // the stated type decides where any text fits
  ...(["string", "number"] as const).map((type): [ToolFormatName, string, Record<string, unknown>] => [
    "kimiK3",
    `<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|>${["loose", "size", "text"]
      .map((key) => `<|open|>argument key="${key}" type="${type}"<|sep|>12<|close|>argument<|sep|>`)
      .join("")}<|close|>call<|sep|><|close|>tools<|sep|>`,
    { loose: type === "string" ? "12" : 12, size: 12, text: "12" },
  ]),
])("%s: %s", (name, text, args) => {
  for (const length of [1, 7, text.length]) {
    expect(parseWith(toolFormats[name].makeParser(TOOLS), cut(text, endless(length)))).toEqual([
      { kind: "toolCall", name: "f", arguments: args },
    ]);
  }
});

function* endless(length: number): Generator<number> {
  for (;;) yield length;
}
