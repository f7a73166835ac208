/** Answers, read from a runner's messages. */
import { describe, expect, test } from "bun:test";
import { makeCallGrammars } from "../../../src/runtime/inference/call-grammars.ts";
import type { Loaded } from "../../../src/runtime/inference/lease.ts";
import { respond } from "../../../src/runtime/inference/respond.ts";
import type { RunnerEvent } from "../../../src/runtime/processes/runner-client.ts";
import type { InferenceEvent } from "../../../src/runtime/requests/runtime.ts";
import type { ThinkingTags } from "../../../src/engine/text/template/thinking.ts";
import { SAMPLING_DEFAULTS } from "../../../src/engine/text/sampling/options.ts";

const FACTS = {
  kind: "jinja",
  source: "<tool_call><function=",
  capabilities: { tools: true, thinking: false, insert: false },
  thinking: undefined,
  callTag: undefined,
} as const;
const STATISTICS = { promptEvalCount: 1, promptCachedCount: 0, promptEvalNs: 1, evalCount: 1, evalNs: 1 };

interface PromptInput {
  readonly reason: "stop" | "length";
  readonly source?: string;
  /** Names of the tools. */
  readonly tools?: readonly string[];
  /** True if one of them must be called. */
  readonly isRequired?: boolean;
  readonly thinking?: ThinkingTags;
  /** The end of the prompt. */
  readonly end?: string;
  readonly think?: boolean;
  /** Maximum number of tokens of thoughts. */
  readonly budget?: number;
  readonly format?: "json";
}

/** The pass of an answer. */
function passOf({
  source = FACTS.source,
  tools: names = ["write"],
  isRequired = false,
  ...more
}: Omit<PromptInput, "reason">) {
  const loaded = { startedNs: 0, loadNs: 0, lease: { runner: { newId: () => 7 } } } as Loaded; // all that is used
  const { thinking, budget = -1 } = more;
  const settings = { options: { ...SAMPLING_DEFAULTS, thinking_budget: budget }, shift: true };
  const tools = names.map((name) => ({ type: "function", function: { name } }));
  return respond(
    loaded,
    {
      asked: { kind: "text", text: "", context: [] },
      settings: { ...settings, ...(more.format ? { format: more.format } : {}) },
      wantsContext: false,
    },
    {
      facts: { ...FACTS, source, thinking },
      think: more.think,
      tools,
      callGrammars: makeCallGrammars(),
      ...(isRequired ? { required: tools } : {}),
    },
  );
}

/** Events of an answer that ends for a reason. */
function read(text: string, input: PromptInput): InferenceEvent[] {
  const pass = passOf(input);
  const { reason, end = "" } = input;
  const events: RunnerEvent[] = [
    { kind: "prompt", id: 1, tokens: 1, cached: 0, evalNs: 0, end },
    ...Array.from(text, (char): RunnerEvent => ({ kind: "text", id: 1, text: char })),
    { kind: "done", id: 1, reason, statistics: STATISTICS, tokens: new Int32Array(0) },
  ];
  return events.flatMap((event) => pass.read(event)).slice(1, -1);
}

const cutCall = (name: string, args: string, text: string): InferenceEvent => ({
  kind: "cutCall",
  call: { function: { name, arguments: args }, text },
});

const HERMES = '<tool_call>{"name": "arguments"';

test("a call cut by num_predict keeps its partial arguments, and a call without its closing tag is complete", () => {
  const begun = "<tool_call>\n<function=write>\n<parameter=text>\nrm -rf /tmp";
  const [cut] = read(begun, { reason: "length" });
  expect(cut).toMatchObject(cutCall("write", '{"text":"rm -rf /tmp', begun.slice("<tool_call>".length)));
  const [call] = read(`${begun}/a\n</parameter>\n</function>`, { reason: "stop" });
  expect(call).toMatchObject({ kind: "toolCall", call: { function: { arguments: { text: "rm -rf /tmp/a" } } } });
});

test("a cut call with a name of no tool is text", () => {
  const begun = '<tool_call>{"name": "wri';
  expect(read(begun, { reason: "length", source: HERMES })).toEqual([{ kind: "text", text: '{"name": "wri' }]);
});

test.each<[string, readonly string[], InferenceEvent[]]>([
  ['{"name": "write", "arguments": {"text": "Once', ["write", "read"], [cutCall("write", '{"text": "Once', "")]],
  ['{"name": "write", "arguments": {"n": 12', ["write"], [cutCall("write", '{"n": 12', "")]],
  ['{"name": "write", "arguments": {"n": 12, "te', ["write"], [cutCall("write", '{"n": 12, "te', "")]],
  ['{"name": "write", "arguments": {', ["write"], [cutCall("write", "{", "")]],
  ['{"name": "write", "arguments": {"a": {"n": 12}', ["write"], [cutCall("write", '{"a": {"n": 12}', "")]],
  ['{"name": "write", "arguments": {"n": 12}  \n', ["write"], [cutCall("write", '{"n":12}', "")]],
  ['{"name": "write", "arguments": {}', ["write"], [cutCall("write", "{}", "")]],
  ['{"name": "write"', ["write"], [cutCall("write", "", "")]],
  ['{"name": "write", "arg', ["write", "read"], [cutCall("write", "", "")]],
  ['{"name": "wri', ["write"], [cutCall("write", "", "")]],
  ['{"name": "wri', ["write", "read"], [{ kind: "text", text: '{"name": "wri' }]],
  ["", ["write"], []],
])("a required call cut at %p with the tools %p gives %p", (text, tools, expected) => {
  for (const reason of ["length", "stop"] as const) {
    const found = read(text, { reason, source: HERMES, tools, isRequired: true });
    const withText = expected.map((event) =>
      event.kind === "cutCall" ? { ...event, call: { ...event.call, text } } : event,
    );
    expect(found).toEqual(withText);
  }
});

test("the thinking budget applies with tools too, even if none can be called", () => {
  const thinking = { open: "<think>", close: "</think>" };
  for (const tools of [["write"], [""], []]) {
    const { calls } = passOf({ tools, thinking, budget: 7 }).request;
    expect(calls?.thinking).toEqual(thinking);
    expect(calls?.triggers.length).toBe(tools[0] === "write" ? 2 : 0);
  }
  expect(passOf({ tools: [""], thinking }).request.calls).toBeUndefined();
});

const K3 = "<|open|><|close|><|sep|>think";
const K3_START = '<|open|>message role="assistant"<|sep|>';

/** Events with neighbours of one kind joined. */
function joined(events: readonly InferenceEvent[]): unknown[] {
  const all: { kind: string; text?: string }[] = [];
  for (const event of events) {
    const last = all.at(-1);
    if ("text" in event && last?.kind === event.kind) last.text += event.text;
    else all.push({ ...event });
  }
  return all;
}

test.each([
  [
    "<|open|>think<|sep|>",
    "Hm.<|close|>think<|sep|><|open|>response<|sep|>Hi.<|close|>response<|sep|>",
    ["thinking", "text"],
  ],
  ["<|open|>response<|sep|>", "Hi.<|close|>response<|sep|>", ["text"]],
  ["<|open|>think<|sep|>", "Hm.", ["thinking"]],
  ["", "<|open|>think<|sep|>Hm.<|close|>think<|sep|>Hi.", ["thinking", "text"]],
])(
  "in a format that marks all elements, behind a prompt that ends with %p, the answer %p gives %p",
  (end, text, kinds) => {
    for (const tools of [[], ["write"]]) {
      const found = read(text, { reason: "stop", source: K3, tools, end: K3_START + end });
      const texts = { thinking: "Hm.", text: "Hi." } as const;
      expect(joined(found)).toEqual(kinds.map((kind) => ({ kind, text: texts[kind as keyof typeof texts] })));
    }
  },
);

test("calls behind thoughts that the prompt opened come out one by one as each ends", () => {
  const pass = passOf({ source: K3 });
  pass.read({ kind: "prompt", id: 1, tokens: 1, cached: 0, evalNs: 0, end: `${K3_START}<|open|>think<|sep|>` });
  const say = (text: string) => pass.read({ kind: "text", id: 1, text });
  const call = (n: number) =>
    `<|open|>call tool="write" index="${n}"<|sep|><|open|>argument key="n" type="number"<|sep|>${n}<|close|>argument<|sep|>`;
  expect(say("Hm.<|close|>think<|sep|><|open|>tools<|sep|>")).toEqual([{ kind: "thinking", text: "Hm." }]);
  for (const n of [1, 2]) {
    expect(say(call(n))).toEqual([]);
    const called = { function: { name: "write", arguments: { n } } };
    expect(say("<|close|>call<|sep|>")).toEqual([{ kind: "toolCall", call: called }]);
  }
});

test("other formats of marked messages continue thoughts that the prompt opened", () => {
  for (const [source, end, text] of [
    ["<|start|><|channel|>", "<|end|><|start|>assistant<|channel|>analysis<|message|>", "Hm.<|end|>"],
    ["<|tool_call:begin|>", "<|begin|>assistant<|think|>", "Hm.<|end|>"],
    ["<atem:function_calls>", "<|start|>assistant to=self<|message|>", "Hm.<|eom|>"],
  ] as const) {
    expect(joined(read(text, { reason: "stop", source, end }))).toEqual([{ kind: "thinking", text: "Hm." }]);
  }
});

test("a required call follows the thoughts in a format that marks all elements", () => {
  const pass = passOf({ source: K3, isRequired: true });
  expect(pass.request.options.stop).toContain("<|close|>think<|sep|>");
  const end = `${K3_START}<|open|>think<|sep|>`;
  pass.read({ kind: "prompt", id: 7, tokens: 1, cached: 0, evalNs: 0, end });
  expect(pass.read({ kind: "text", id: 7, text: "Hm." })).toEqual([{ kind: "thinking", text: "Hm." }]);
  pass.read({ kind: "done", id: 7, reason: "stop", statistics: STATISTICS, tokens: new Int32Array(0) });
  const text = "Hm.<|close|>think<|sep|><|open|>response<|sep|>";
  expect(pass.next?.()?.request).toMatchObject({ asked: { kind: "after", id: 7, text }, format: {} });
  const { asked } = passOf({ source: K3, isRequired: true, think: false }).request;
  expect(asked).toMatchObject({ ending: { text: "<|open|>response<|sep|>" } });
});

describe("with a format, a model that may call tools", () => {
  const prompt = { kind: "prompt", id: 1, tokens: 5, cached: 2, evalNs: 3, end: "" } as const;
  const say = (text: string) => ({ kind: "text", id: 1, text }) as const;
  const done = { kind: "done", id: 1, reason: "stop", statistics: STATISTICS, tokens: new Int32Array(0) } as const;

  test("opens a call without the format, and that is the answer", () => {
    const pass = passOf({ format: "json" });
    expect([pass.request.format, pass.request.calls?.once]).toEqual([undefined, false]);
    expect(pass.read(prompt)).toMatchObject([{ kind: "prompt" }]);
    expect(pass.read(say("\n<tool_call>"))).toEqual([]);
    expect(pass.isOver?.()).toBe(false);
    const found = pass.read(say("\n<function=write>\n</function>\n</tool_call>"));
    const end = pass.read(done);
    expect(found.filter(({ kind }) => kind === "toolCall")).toHaveLength(1);
    expect(end.at(-1)).toMatchObject({ kind: "done", reason: "stop" });
    expect([pass.isOver?.(), pass.next?.()]).toEqual([false, undefined]);
  });

  test("begins with other text or ends, and then answers in the format; the prompt counts once", () => {
    for (const words of ["Sure", "\n\n", undefined]) {
      const pass = passOf({ format: "json" });
      const first = [prompt, ...(words === undefined ? [] : [say(words)])].flatMap((event) => pass.read(event));
      expect(first).toMatchObject([{ kind: "prompt", promptEvalCount: 5 }]);
      expect(pass.isOver?.()).toBe(words === "Sure");
      if (words !== "Sure") expect(pass.read(done)).toEqual([]);
      const next = pass.next!()!;
      expect(next.request).toMatchObject({ format: "json", asked: { kind: "text" } });
      expect(next.request.calls).toBeUndefined();
      const events = [{ ...prompt, cached: 5 }, say("{}"), done].flatMap((event) => next.read(event));
      expect(events).toMatchObject([
        { kind: "text", text: "{}" },
        { kind: "done", statistics: { promptEvalCount: 5, promptCachedCount: 2, evalCount: 1 } },
      ]);
    }
  });

  test("thinks first, and then calls or answers", () => {
    const thinking = { open: "<think>", close: "</think>" };
    for (const [words, kinds] of [
      ["<tool_call>\n<function=write>\n</function>\n</tool_call>", ["toolCall", "done"]],
      ["Sure", []],
    ] as const) {
      const thoughts = passOf({ format: "json", thinking });
      for (const event of [prompt, say("<think>Hm."), { ...done, stopSequence: "</think>" }]) thoughts.read(event);
      const pass = thoughts.next!()!;
      const asked = { kind: "after", id: 7, text: "<think>Hm.</think>\n\n" } as const;
      expect(pass.request.asked).toEqual(asked);
      expect(pass.request.format).toBeUndefined();
      const events = [prompt, say(words), ...(kinds.length > 0 ? [done] : [])].flatMap((event) => pass.read(event));
      expect(events.map(({ kind }) => kind).filter((kind) => kind !== "text")).toEqual([...kinds]);
      if (kinds.length > 0) expect(events.at(-1)).toMatchObject({ statistics: { evalCount: 2 } });
      const answer = kinds.length > 0 ? {} : { request: { format: "json", asked } };
      expect(pass.next!() ?? {}).toMatchObject(answer);
    }
  });

  test("that writes calls in bare JSON is asked for the value as soon as a key tells", () => {
    const source = "{%- if custom_tools is defined %}<|python_tag|>{%- endif %}";
    for (const [words, isOver] of [
      ['{"sk', false],
      ['{"sky"', true],
      [' { "a\\"b"', true],
      ['{"name"', false],
      ['{"type": "function", "name": "write"', false],
    ] as const) {
      const pass = passOf({ source, format: "json" });
      for (const event of [prompt, say(words)]) pass.read(event);
      expect([words, pass.isOver?.()]).toEqual([words, isOver]);
    }
  });

  test("has the mark of an answer in its prompt only for the value", () => {
    const pass = passOf({ source: K3, format: "json", think: false });
    const inside = { open: "<|open|>think<|sep|>", close: "<|close|>think<|sep|>" };
    expect(pass.request.asked).toMatchObject({ ending: { text: "", inside } });
    pass.read({ ...prompt, end: `${K3_START}<|open|>think<|sep|><|close|>think<|sep|>` });
    pass.read(say("<|open|>response<|sep|>Hi"));
    expect(pass.isOver?.()).toBe(true);
    expect(pass.next!()!.request.asked).toMatchObject({ ending: { text: "<|open|>response<|sep|>", inside } });
  });
});
