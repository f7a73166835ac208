/** Answers, read from a runner's messages. */
import { expect, test } from "bun:test";
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
  /** Most tokens of thoughts. */
  readonly budget?: number;
}

/** The pass of an answer. */
function passOf({
  source = FACTS.source,
  tools: names = ["write"],
  isRequired = false,
  ...more
}: Omit<PromptInput, "reason">) {
  const loaded = { startedNs: 0, loadNs: 0 } as Loaded; // no other fields are used
  const { thinking, budget = -1 } = more;
  const settings = { options: { ...SAMPLING_DEFAULTS, thinking_budget: budget }, shift: true };
  const tools = names.map((name) => ({ type: "function", function: { name } }));
  return respond(
    loaded,
    { asked: { kind: "text", text: "", context: [] }, settings, wantsContext: false },
    {
      facts: { ...FACTS, source, thinking },
      think: undefined,
      tools,
      callGrammars: makeCallGrammars(),
      ...(isRequired ? { required: tools } : {}),
    },
  );
}

/** Events of an answer that ends for a reason. */
function read(text: string, input: PromptInput): InferenceEvent[] {
  const pass = passOf(input);
  const { reason } = input;
  const events: RunnerEvent[] = [
    { kind: "prompt", id: 1, tokens: 1, cached: 0, evalNs: 0, end: "" },
    { kind: "text", id: 1, text },
    { kind: "done", id: 1, reason, statistics: STATISTICS, tokens: new Int32Array(0) },
  ];
  return events.flatMap((event) => pass.read(event)).slice(1, -1);
}

const cutCall = (name: string, args: string, text: string): InferenceEvent => ({
  kind: "cutCall",
  call: { function: { name, arguments: args }, text },
});

const HERMES = '<tool_call>{"name": "arguments"';

test("a call that an answer's length cuts keeps what was written, one that lacks its closing tag is a call", () => {
  const begun = "<tool_call>\n<function=write>\n<parameter=text>\nrm -rf /tmp";
  const [cut] = read(begun, { reason: "length" });
  expect(cut).toMatchObject(cutCall("write", '{"text":"rm -rf /tmp', begun.slice("<tool_call>".length)));
  const [call] = read(`${begun}/a\n</parameter>\n</function>`, { reason: "stop" });
  expect(call).toMatchObject({ kind: "toolCall", call: { function: { arguments: { text: "rm -rf /tmp/a" } } } });
});

test("a cut call of a name that no tool has is text", () => {
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
])("a required call that is cut as %p, of the tools %p, gives %p", (text, tools, expected) => {
  for (const reason of ["length", "stop"] as const) {
    const found = read(text, { reason, source: HERMES, tools, isRequired: true });
    const withText = expected.map((event) =>
      event.kind === "cutCall" ? { ...event, call: { ...event.call, text } } : event,
    );
    expect(found).toEqual(withText);
  }
});

test("thoughts are limited with tools too, even if none can be called", () => {
  const thinking = { open: "<think>", close: "</think>" };
  for (const tools of [["write"], [""], []]) {
    const { calls } = passOf({ tools, thinking, budget: 7 }).request;
    expect(calls?.thinking).toEqual(thinking);
    expect(calls?.triggers.length).toBe(tools[0] === "write" ? 2 : 0);
  }
  expect(passOf({ tools: [""], thinking }).request.calls).toBeUndefined();
});
