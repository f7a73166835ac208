/**
 * Answers in every tool-call format, and their meaning. Each format has an answer with text and two calls, arguments of
 * all JSON types, an unfinished call, and text that only looks like a call.
 */
import type { ParsedEvent } from "../../../src/runtime/parse/format.ts";
import type { ToolFormatName } from "../../../src/runtime/parse/index.ts";
import type { Tool } from "../../../src/runtime/requests/runtime.ts";

export interface Fixture {
  readonly answer: string;
  readonly events: readonly ParsedEvent[];
}

const tool = (name: string, properties: Record<string, unknown>): Tool => ({
  type: "function",
  function: { name, description: name, parameters: { type: "object", properties } },
});

export const TOOLS: readonly Tool[] = [
  tool("weather", {
    city: { type: "string" },
    days: { type: "integer" },
    near: { type: "array", items: { type: "string" } },
    exact: { type: "boolean" },
  }),
  tool("now", {}),
];

const text = (content: string): ParsedEvent => ({ kind: "text", text: content });
const thinking = (content: string): ParsedEvent => ({ kind: "thinking", text: content });
const call = (name: string, args: Record<string, unknown> = {}): ParsedEvent => ({
  kind: "toolCall",
  name,
  arguments: args,
});

const ARGS = { city: 'São "P} </x>', days: 2, near: ["a b", "c"], exact: true };
const JSON_ARGS = JSON.stringify(ARGS);
const BOTH = [text("Let me see."), call("weather", ARGS), call("now")];

/** Formats of JSON between tags differ in their tags only. */
function jsonBetween(open: string, close: string, keys = { name: "name", args: "arguments" }): Fixture[] {
  const one = (name: string, args: string): string => `{"${keys.name}": "${name}", "${keys.args}": ${args}}`;
  const list = `[${one("weather", JSON_ARGS)}, ${one("now", "{}")}]`;
  return [
    { answer: `Let me see.\n${open}\n${list}\n${close}`, events: BOTH },
    { answer: `${open}${one("now", "{}")}${close} Done.`, events: [call("now"), text("Done.")] },
    { answer: `${open}${one("unknown", '{"a": null}')}${close}`, events: [call("unknown", { a: null })] },
    { answer: `a ${open}[{"name": 3}]${close}`, events: [text('a [{"name": 3}]')] },
    { answer: `a ${open}{"name": "now", "argum`, events: [text('a {"name": "now", "argum')] },
    { answer: "[1] < {2} <| plain", events: [text("[1] < {2} <| plain")] },
  ];
}

const OPEN = "<｜tool▁calls▁begin｜>";
const CALL = "<｜tool▁call▁begin｜>";
const CALL_END = "<｜tool▁call▁end｜>";
const SEP = "<｜tool▁sep｜>";
const END = "<｜tool▁calls▁end｜>";

export const FIXTURES: Readonly<Record<ToolFormatName, readonly Fixture[]>> = {
  hermes: jsonBetween("<tool_call>", "</tool_call>"),
  granite: jsonBetween("<|tool_call|>", ""),
  phi4: jsonBetween("<|tool_call|>", "<|/tool_call|>"),
  nemotron: jsonBetween("<TOOLCALL>", "</TOOLCALL>"),
  jamba: [
    ...jsonBetween("<tool_calls>", "</tool_calls>"),
    {
      answer: `<tool_calls>\n{"name": "weather", "arguments": ${JSON_ARGS}}\n{"name": "now", "arguments": {}}\n</tool_calls>`,
      events: BOTH.slice(1),
    },
  ],
  cohere: jsonBetween("<|START_ACTION|>", "<|END_ACTION|>", { name: "tool_name", args: "parameters" }),
  commandR: jsonBetween("Action: ```json", "```", { name: "tool_name", args: "parameters" }),
  firefunction: jsonBetween("functools", ""),
  llama3: [
    {
      answer: `{"name": "weather", "parameters": ${JSON_ARGS}}; {"name": "now", "parameters": {}}`,
      events: BOTH.slice(1),
    },
    { answer: `<|python_tag|>{"name": "now", "parameters": {}}`, events: [call("now")] },
    { answer: '<|python_tag|>search.call(query="a, \\"b\\"")', events: [call("search", { query: 'a, "b"' })] },
    { answer: '\n{"temperature": 3}', events: [text('\n{"temperature": 3}')] },
    { answer: '{"name": "Bob", "age": 3}', events: [text('{"name": "Bob", "age": 3}')] },
    { answer: '{"name": "now"}', events: [call("now")] },
    { answer: '{"name": "now", "par', events: [text('{"name": "now", "par')] },
    { answer: 'It is {"name": "now"}.', events: [text('It is {"name": "now"}.')] },
  ],
  mistral: [
    ...jsonBetween("[TOOL_CALLS] ", "").slice(0, 3),
    {
      answer: `Let me see.[TOOL_CALLS]weather[ARGS]${JSON_ARGS}[TOOL_CALLS]now[CALL_ID]a1b2c3d4e[ARGS]{}`,
      events: BOTH,
    },
    { answer: "[TOOL_CALLS]now{}", events: [call("now")] },
    { answer: "[TOOL_CALLS]no name at all", events: [text("no name at all")] },
    { answer: "[TOOL", events: [text("[TOOL")] },
  ],
  deepseek: [
    {
      answer:
        `Let me see.${OPEN}${CALL}function${SEP}weather\n\`\`\`json\n${JSON_ARGS}\n\`\`\`${CALL_END}\n` +
        `${CALL}function${SEP}now\n\`\`\`json\n{}\n\`\`\`${CALL_END}${END}`,
      events: BOTH,
    },
    {
      answer: `Let me see.${OPEN}${CALL}weather${SEP}${JSON_ARGS}${CALL_END}${CALL}now${SEP}{}${CALL_END}${END}`,
      events: BOTH,
    },
    { answer: `${OPEN}${CALL}now${SEP}{}`, events: [call("now")] },
    { answer: `${OPEN}nothing${END}`, events: [text("nothing")] },
  ],
  functionTags: [
    {
      answer:
        'Let me see.\n<tool_call>\n<function=weather>\n<parameter=city>\nSão "P} </x>\n</parameter>\n' +
        '<parameter=days>\n2\n</parameter>\n<parameter=near>\n["a b", "c"]\n</parameter>\n' +
        "<parameter=exact>\nTrue\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=now>\n</function>\n</tool_call>",
      events: BOTH,
    },
    { answer: "<function=now>\n</function>", events: [call("now")] },
    { answer: '<function=now>{"a": 1}</function>', events: [call("now", { a: 1 })] },
    {
      answer: "<tool_call><function=weather><parameter=city>1\n2</parameter></function></tool_call>",
      events: [call("weather", { city: "1\n2" })],
    },
    {
      answer:
        "<tool_call><function=other><parameter=n>1.5</parameter><parameter=s>x y</parameter></function></tool_call>",
      events: [call("other", { n: 1.5, s: "x y" })],
    },
    { answer: "<tool_call>nothing</tool_call>", events: [text("nothing")] },
  ],
  glm: [
    {
      answer:
        'Let me see.<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>São "P} </x></arg_value>\n' +
        '<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n<arg_key>near</arg_key>\n<arg_value>["a b","c"]</arg_value>\n' +
        "<arg_key>exact</arg_key><arg_value>true</arg_value>\n</tool_call><tool_call>now</tool_call>",
      events: BOTH,
    },
    { answer: "<tool_call>two words</tool_call>", events: [text("two words")] },
  ],
  minimax: [
    {
      answer:
        'Let me see.\n<minimax:tool_call>\n<invoke name="weather">\n<parameter name="city">São "P} </x></parameter>\n' +
        '<parameter name="days">2</parameter>\n<parameter name="near">["a b", "c"]</parameter>\n' +
        '<parameter name="exact">true</parameter>\n</invoke>\n<invoke name="now">\n</invoke>\n</minimax:tool_call>',
      events: BOTH,
    },
    { answer: "<minimax:tool_call>nothing</minimax:tool_call>", events: [text("nothing")] },
  ],
  glimmer: [
    {
      answer:
        " to=self<|message|>Hm.<|eom|><|start|>assistant to=user<|message|>Let me see.<|eom|><|start|>assistant to=weather<|message|>" +
        '<atem:function_calls>\n<atem:invoke name="weather">\n<atem:parameter name="city">São "P} </x></atem:parameter>\n' +
        '<atem:parameter name="days">2</atem:parameter>\n<atem:parameter name="near">["a b", "c"]</atem:parameter>\n' +
        '<atem:parameter name="exact">true</atem:parameter>\n</atem:invoke>\n</atem:function_calls><|eom|>' +
        '<|start|>assistant to=now<|message|><atem:function_calls>\n<atem:invoke name="now">\n</atem:invoke>\n</atem:function_calls><|eot|>',
      events: [thinking("Hm."), ...BOTH],
    },
    { answer: " to=user<|message|>Hi <b>.<|eot|>", events: [text("Hi <b>.")] },
    { answer: " to=now<|message|>nothing", events: [text("nothing")] },
    { answer: "No header at all", events: [text("No header at all")] },
  ],
  dsml: [
    {
      answer:
        'Let me see.\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name="weather">\n' +
        '<｜DSML｜parameter name="city" string="true">São "P} </x></｜DSML｜parameter>\n' +
        '<｜DSML｜parameter name="days" string="false">2</｜DSML｜parameter>\n' +
        '<｜DSML｜parameter name="near" string="false">["a b", "c"]</｜DSML｜parameter>\n' +
        '<｜DSML｜parameter name="exact" string="false">true</｜DSML｜parameter>\n</｜DSML｜invoke>\n' +
        '<｜DSML｜invoke name="now">\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>',
      events: BOTH,
    },
    {
      answer:
        '<｜DSML｜function_calls><｜DSML｜invoke name="f"><｜DSML｜parameter name="a" string="true">1</｜DSML｜parameter></｜DSML｜invoke>',
      events: [call("f", { a: "1" })],
    },
    { answer: "<｜DSML｜tool_calls>nothing</｜DSML｜tool_calls>", events: [text("nothing")] },
  ],
  minimaxM3: [
    {
      answer:
        'Let me see.]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="weather">]<]minimax[>[<city>São "P} </x>]<]minimax[>[</city>' +
        "]<]minimax[>[<days>2]<]minimax[>[</days>]<]minimax[>[<near>]<]minimax[>[<item>a b]<]minimax[>[</item>" +
        "]<]minimax[>[<item>c]<]minimax[>[</item>]<]minimax[>[</near>]<]minimax[>[<exact>true]<]minimax[>[</exact>" +
        ']<]minimax[>[</invoke>\n]<]minimax[>[<invoke name="now">]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>',
      events: BOTH,
    },
    {
      answer:
        ']<]minimax[>[<tool_call>]<]minimax[>[<invoke name="f">]<]minimax[>[<a>]<]minimax[>[<b>1]<]minimax[>[</b>]<]minimax[>[</a>]<]minimax[>[</invoke>',
      events: [call("f", { a: { b: 1 } })],
    },
    { answer: "]<]minimax[>[<tool_call>nothing]<]minimax[>[</tool_call>", events: [text("nothing")] },
  ],
  hunyuan: [
    {
      answer:
        "Let me see.<tool_calls:opensource>\n<tool_call:opensource>weather<tool_sep:opensource>\n" +
        '<arg_key:opensource>city</arg_key:opensource>\n<arg_value:opensource>São "P} </x></arg_value:opensource>\n' +
        "<arg_key:opensource>days</arg_key:opensource>\n<arg_value:opensource>2</arg_value:opensource>\n" +
        '<arg_key:opensource>near</arg_key:opensource>\n<arg_value:opensource>["a b", "c"]</arg_value:opensource>\n' +
        "<arg_key:opensource>exact</arg_key:opensource>\n<arg_value:opensource>true</arg_value:opensource>\n" +
        "</tool_call:opensource>\n<tool_call:opensource>now<tool_sep:opensource>\n</tool_call:opensource>\n</tool_calls:opensource>",
      events: BOTH,
    },
    { answer: "<tool_calls:opensource>nothing</tool_calls:opensource>", events: [text("nothing")] },
  ],
  solar: [
    {
      answer:
        "<|think|>Hm.<|end|><|begin|>assistant<|content|>Let me see.<|end|><|begin|>assistant<|tool_calls|>" +
        `<|tool_call:begin|>a1b2c3d4e5<|tool_call:name|>weather<|tool_call:args|>${JSON_ARGS}<|tool_call:end|>` +
        "<|tool_call:begin|>a1b2c3d4e6<|tool_call:name|>now<|tool_call:args|>{}<|tool_call:end|><|calls|>",
      events: [thinking("Hm."), ...BOTH],
    },
    { answer: "<|content|>Hi <b>.<|end|>", events: [text("Hi <b>.")] },
    { answer: "<|tool_calls|>nothing<|calls|>", events: [text("nothing")] },
  ],
  kimiK3: [
    {
      answer:
        "<|open|>think<|sep|>Hm.<|close|>think<|sep|><|open|>response<|sep|>Let me see.<|close|>response<|sep|>" +
        '<|open|>tools<|sep|><|open|>call tool="weather" index="1"<|sep|>' +
        '<|open|>argument key="city" type="string"<|sep|>São "P} </x><|close|>argument<|sep|>' +
        '<|open|>argument key="days" type="number"<|sep|>2<|close|>argument<|sep|>' +
        '<|open|>argument key="near" type="array"<|sep|>["a b","c"]<|close|>argument<|sep|>' +
        '<|open|>argument key="exact" type="boolean"<|sep|>true<|close|>argument<|sep|><|close|>call<|sep|>\n' +
        '<|open|>call tool="now" index="2"<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>',
      events: [thinking("Hm."), ...BOTH],
    },
    {
      answer:
        '<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|><|open|>json type="object"<|sep|>' +
        '{"a": [1, "b"]}<|close|>json<|sep|><|close|>call<|sep|><|close|>tools<|sep|>',
      events: [call("f", { a: [1, "b"] })],
    },
    {
      answer:
        '<|open|>tools<|sep|><|open|>call tool="f" index="1"<|sep|><|open|>argument key="a &amp;quot; &quot;b&quot;" ' +
        'type="string"<|sep|>12<|close|>argument<|sep|><|open|>argument key="n" type="number"<|sep|>12<|close|>argument<|sep|>' +
        "<|close|>call<|sep|><|close|>tools<|sep|>",
      events: [call("f", { 'a &quot; "b"': "12", n: 12 })],
    },
    {
      answer:
        '<|open|>message role="assistant"<|sep|><|open|>response<|sep|>The response tag, then a message, a call, think.' +
        "<|close|>response<|sep|><|close|>message<|sep|>",
      events: [text("The response tag, then a message, a call, think.")],
    },
    {
      answer: "<|open|>think<|sep|>No end<|open|>response<|sep|>Hi <b>.",
      events: [thinking("No end"), text("Hi <b>.")],
    },
    {
      answer: '<|open|>tools<|sep|><|open|>call tool="now" index="1"<|sep|>nothing<|close|>call<|sep|>',
      events: [text("nothing")],
    },
    { answer: "<|open|>tools<|sep|>nothing<|close|>tools<|sep|>", events: [text("nothing")] },
    { answer: "No tag at all", events: [text("No tag at all")] },
  ],
  kimi: [
    {
      answer:
        "Let me see.<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>" +
        `${JSON_ARGS}<|tool_call_end|><|tool_call_begin|>functions.now:1<|tool_call_argument_begin|>{}<|tool_call_end|>` +
        "<|tool_calls_section_end|>",
      events: BOTH,
    },
    {
      answer: "<|tool_calls_section_begin|><|tool_call_begin|>now<|tool_call_argument_begin|>{}",
      events: [call("now")],
    },
    { answer: "<|tool_calls_section_begin|>nothing<|tool_calls_section_end|>", events: [text("nothing")] },
  ],
  functionary: [
    { answer: `all\nLet me see.>>>weather\n${JSON_ARGS}>>>now\n{}`, events: BOTH },
    { answer: "now\n{}", events: [call("now")] },
    {
      answer: "all\nIn Python:\n>>> print(1)\n1\n>>>all\nDone.",
      events: [text("In Python:\n>>> print(1)\n1\nDone.")],
    },
    { answer: "now\nnothing", events: [text("nothing")] },
    { answer: "all\nIt prints:\n>>> print(1)", events: [text("It prints:\n>>> print(1)")] },
    { answer: "It is cold.", events: [text("It is cold.")] },
  ],
  apertus: [
    {
      answer: `Let me see.<|tools_prefix|>[{"weather": ${JSON_ARGS}}, {"now": {}}]<|tools_suffix|>`,
      events: BOTH,
    },
    {
      answer: '<|tools_prefix|>[{"name": "now", "arguments": {}}]<|tools_suffix|>',
      events: [call("now")],
    },
    { answer: "<|tools_prefix|>nothing<|tools_suffix|>", events: [text("nothing")] },
  ],
  gigachat: [
    ...jsonBetween("<|function_call|>", ""),
    {
      answer: 'Let me see.<|message_sep|>\n\nfunction call<|role_sep|>\n{"name": "now", "arguments": {}}',
      events: [text("Let me see."), call("now")],
    },
  ],
  minicpm: [
    {
      answer:
        'Let me see.\n<function name="weather"><param name="city"><![CDATA[São "P} </x>]]></param><param name="days">2</param>' +
        '<param name="near">["a b", "c"]</param><param name="exact">True</param></function>\n<function name="now"></function>',
      events: BOTH,
    },
    {
      answer: '<function name="f"><param name="a"><![CDATA[</function> </param>]]></param></function>',
      events: [call("f", { a: "</function> </param>" })],
    },
    { answer: '<function name="f">nothing</function>', events: [text('f">nothing')] },
  ],
  gemma4: [
    {
      answer:
        'Let me see.<|tool_call>call:weather{city:<|"|>São "P} </x><|"|>,days:2,near:[<|"|>a b<|"|>,<|"|>c<|"|>],exact:true}<tool_call|>' +
        "<|tool_call>call:now{}<tool_call|>",
      events: BOTH,
    },
    { answer: "<|tool_call>nothing<tool_call|>", events: [text("nothing")] },
  ],
  functionGemma: [
    {
      answer:
        'Let me see.<start_function_call>call:weather{city:<escape>São "P} </x><escape>,days:2,near:[<escape>a b<escape>,<escape>c<escape>],exact:true}<end_function_call>' +
        "<start_function_call>call:now{}<end_function_call>",
      events: BOTH,
    },
    { answer: "<start_function_call>call:now{a:b}", events: [call("now", { a: "b" })] },
    { answer: "<start_function_call>call:now{a:", events: [text("call:now{a:")] },
  ],
  lfm2: [
    {
      answer:
        "Let me see.<|tool_call_start|>[weather(city='São \"P} </x>', days=2, near=[\"a b\", 'c'], exact=True), now()]<|tool_call_end|>",
      events: BOTH,
    },
    {
      answer: "<|tool_call_start|>[f(a=None, b={'k': (1, -2.5e1)}, c='\\u00e9\\n\\'')]<|tool_call_end|>",
      events: [call("f", { a: null, b: { k: [1, -25] }, c: "é\n'" })],
    },
    { answer: '<|tool_call_start|>{"name": "now"}<|tool_call_end|>', events: [call("now")] },
    { answer: "<|tool_call_start|>[now(<|tool_call_end|>", events: [text("[now(")] },
  ],
  olmo3: [
    {
      answer:
        'Let me see.\n<function_calls>\nweather(city="São \\"P} </x>", days=2, near=["a b", "c"], exact=true)\nnow()\n</function_calls>',
      events: BOTH,
    },
    { answer: "<function_calls>x = 3</function_calls>", events: [text("x = 3")] },
  ],
  harmony: [
    {
      answer:
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Let me see.<|end|>" +
        `<|start|>assistant<|channel|>commentary to=functions.weather <|constrain|>json<|message|>${JSON_ARGS}<|call|>` +
        "<|start|>assistant to=functions.now<|channel|>commentary<|message|>{}",
      events: [thinking("Hm."), ...BOTH],
    },
    { answer: "<|channel|>final<|message|>Hi <b>.<|return|>", events: [text("Hi <b>.")] },
    { answer: "<|channel|>commentary to=functions.now<|message|>{oops", events: [text("{oops")] },
    { answer: "No header <|at all", events: [text("No header <|at all")] },
    { answer: "<|channel|>final", events: [] },
  ],
  plain: [
    { answer: `{"name": "weather", "parameters": ${JSON_ARGS}}`, events: [call("weather", ARGS)] },
    { answer: `{"weather": ${JSON_ARGS}}`, events: [call("weather", ARGS)] },
    { answer: '{"calls": [{"name": "now", "arguments": {}}]}', events: [call("now")] },
    { answer: '{"name": "unknown", "arguments": {}}', events: [text('{"name": "unknown", "arguments": {}}')] },
    { answer: '{"name": "now"}', events: [text('{"name": "now"}')] },
    { answer: 'Hi {"name": "now", "arguments": {}}', events: [text('Hi {"name": "now", "arguments": {}}')] },
  ],
};
