import { expect, test } from "bun:test";
import { withoutCalls } from "../../../src/gateway/agent/call-markup.ts";
import { testAgent } from "./parts.ts";
import { cpuMs } from "../../cpu-time.ts";

const CALL = '{"name": "send_message", "arguments": {"to": "x"}}';

test.each([
  ["hermes", `<tool_call>\n${CALL}\n</tool_call>`],
  ["cut off", `<tool_call>\n{"name": "send_`],
  ["several", `<tool_call>${CALL}</tool_call>\n<tool_call>${CALL}</tool_call>`],
  ["jamba", `<tool_calls>[${CALL}]</tool_calls>`],
  ["minimax", '<minimax:tool_call>\n<invoke name="x"></invoke>\n</minimax:tool_call>'],
  ["function tags", "<function=send><parameter=to>x</parameter></function>"],
  ["phi4", `<|tool_call|>[${CALL}]<|/tool_call|>`],
  ["gemma4", "<|tool_call>call:send{to:x}<tool_call|>"],
  ["lfm2", "<|tool_call_start|>[send(to='x')]<|tool_call_end|>"],
  ["functionGemma", "<start_function_call>call:send{}<end_function_call>"],
  [
    "deepseek",
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>send<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
  ],
  ["cohere", `<|START_ACTION|>[${CALL}]<|END_ACTION|>`],
  ["mistral", `[TOOL_CALLS]send[ARGS]{"to": "x"}`],
  ["llama3", `<|python_tag|>${CALL}`],
])("call markup is removed from a text, also beside other words: %s", (_, call) => {
  expect(withoutCalls(call)).toBe("");
  expect(withoutCalls(`It burns.\n\n${call}`)).toBe("It burns.");
});

test.each(["plain", "  as it is \n", "a <b> and a {c}", "", "functools[1]", "<tool> of the trade"])(
  "text without call markup is unchanged: '%s'",
  (text) => {
    expect(withoutCalls(text)).toBe(text);
  },
);

test("a long text of opening tags is processed within its time limit", () => {
  const began = cpuMs();
  withoutCalls("<tool_call>".repeat(50_000));
  withoutCalls("<function=x>".repeat(50_000));
  expect(cpuMs() - began).toBeLessThan(10_000);
});

test("a turn without tools removes calls from the answer, and fails if the answer has no other text", async () => {
  const call = `<tool_call>\n${CALL}\n</tool_call>`;
  const { turn } = testAgent((_, index) => ({ text: index === 0 ? `It burns. ${call}` : call }));
  expect(await turn({})).toMatchObject({ status: "ok", text: "It burns." });
  expect(await turn({})).toMatchObject({
    status: "error",
    isTemporary: false,
    error: "model 'hearth:latest' called a tool instead of answering, and this turn has none",
  });
});
