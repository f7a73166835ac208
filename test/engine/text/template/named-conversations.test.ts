/**
 * Renderers without a published template of their models, against other servers' prompts: system texts, thinking, calls
 * and results in the notation of each.
 */
import { describe, expect, test } from "bun:test";
import type { PromptMessage, PromptTool } from "../../../../src/engine/text/template/messages.ts";
import { choosePrompt, renderChat } from "../../../../src/engine/text/template/prompt.ts";

const BOS = "<bos>";
const user = (content: string): PromptMessage => ({ role: "user", content });
const system = (content: string): PromptMessage => ({ role: "system", content });
const assistant = (content: string, more: Partial<PromptMessage> = {}): PromptMessage => ({
  role: "assistant",
  content,
  ...more,
});
const result = (content: string): PromptMessage => ({ role: "tool", content });
const call = (name: string, args: Record<string, unknown>) => ({ function: { name, arguments: args } });
const FORECAST: PromptTool = {
  type: "function",
  function: {
    name: "forecast",
    description: "Tomorrow's weather",
    parameters: {
      type: "object",
      required: ["place"],
      properties: { place: { type: "string", description: "A town" } },
    },
  },
};
const BOTH = assistant("", {
  tool_calls: [call("forecast", { place: "Oslo" }), call("add", { a: 1, b: [2, 3] })],
});

function render(renderer: string, messages: readonly PromptMessage[], more: object = {}): string {
  return renderChat(choosePrompt({ renderer, tokens: { bos: BOS } }), { messages, now: new Date(0), ...more });
}

describe("cogito", () => {
  const NAMED =
    "You are Cogito, an AI assistant created by Deep Cogito, which is an AI research lab based in San Francisco.";
  const THINKS = "Enable deep thinking subroutine.\n\n";
  const called = (name: string, args: string): string =>
    `<｜tool▁call▁begin｜>function<｜tool▁sep｜>${name}\n\`\`\`json\n${args}\n\`\`\`<｜tool▁call▁end｜>`;

  test("renders its own system text before the given one, and thinks if asked", () => {
    const turns = [system("Be brief."), user("Hello")];
    expect(render("cogito", turns, { think: false })).toBe(`${BOS}${NAMED}\n\nBe brief.<｜User｜>Hello<｜Assistant｜>`);
    expect(render("cogito", turns, { think: true })).toBe(
      `${BOS}${THINKS}${NAMED}\n\nBe brief.\n\n<｜User｜>Hello<｜Assistant｜><think>\n`,
    );
    expect(render("cogito", [user("Hello")], { think: true })).toBe(
      `${BOS}${THINKS}${NAMED}<｜User｜>Hello<｜Assistant｜><think>\n`,
    );
  });

  test("renders tools as indented JSON behind the system text, and calls and results line by line", () => {
    const json = JSON.stringify(FORECAST, null, 4);
    expect(render("cogito", [user("Oslo?"), BOTH, result("4"), result("6")], { tools: [FORECAST], think: false })).toBe(
      `${BOS}${NAMED}\nYou have the following functions available:\n\`\`\`json\n${json}\n\`\`\`\n<｜User｜>Oslo?<｜Assistant｜>` +
        `<｜tool▁calls▁begin｜>${called("forecast", '{"place":"Oslo"}')}\n${called("add", '{"a":1,"b":[2,3]}')}` +
        "<｜tool▁calls▁end｜><｜end▁of▁sentence｜><｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>4<｜tool▁output▁end｜>\n" +
        "<｜tool▁output▁begin｜>6<｜tool▁output▁end｜><｜tool▁outputs▁end｜><｜Assistant｜>",
    );
  });
});

test("ornith renders the thoughts of all answers, even empty ones, with thinking on and off", () => {
  const turns = (thinking: string): PromptMessage[] => [user("Hi"), assistant("Hello.", { thinking }), user("Bye")];
  const said = (thoughts: string, end: string): string =>
    `<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n${thoughts}\n</think>\n\nHello.<|im_end|>\n` +
    `<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n<think>\n${end}`;
  expect(render("ornith", turns(""))).toBe(said("", ""));
  expect(render("ornith", turns("Short."), { think: false })).toBe(said("Short.", "\n</think>\n\n"));
});

test("glm-ocr renders a line break behind each role, and an empty thought before each answer", () => {
  expect(render("glm-ocr", [user("One"), assistant("Done."), user("Two")])).toBe(
    "[gMASK]<sop><|user|>\nOne<|assistant|>\n<think></think>\nDone.\n<|user|>\nTwo<|assistant|>\n",
  );
});

describe("functiongemma", () => {
  const DEFAULT = "You can do function calling with the following functions:";
  const declared =
    "<start_function_declaration>declaration:forecast{description:<escape>Tomorrow's weather<escape>,parameters:" +
    "{properties:{place:{description:<escape>A town<escape>,type:<escape>STRING<escape>}}," +
    "required:[<escape>place<escape>],type:<escape>OBJECT<escape>}}<end_function_declaration>";
  const ask = `<start_of_turn>user\nOslo?<end_of_turn>\n<start_of_turn>model\n`;

  test("renders tools and the system text as a developer's turn", () => {
    expect(render("functiongemma", [user("Oslo?")])).toBe(`${BOS}${ask}`);
    expect(render("functiongemma", [system("Be brief."), user("Oslo?")], { tools: [FORECAST] })).toBe(
      `${BOS}<start_of_turn>developer\nBe brief.\n${DEFAULT}${declared}<end_of_turn>\n${ask}`,
    );
  });

  test("renders results and the next question in the model's turn", () => {
    const turns = [user("Oslo?"), BOTH, result("4"), result("6")];
    const expected =
      `${BOS}<start_of_turn>developer\n${DEFAULT}${declared}<end_of_turn>\n${ask}` +
      "<start_function_call>call:forecast{place:<escape>Oslo<escape>}<end_function_call>" +
      "<start_function_call>call:add{a:1,b:[2,3]}<end_function_call>" +
      "<start_function_response>response:forecast{<escape>4<escape>}<end_function_response>" +
      "<start_function_response>response:add{<escape>6<escape>}<end_function_response>";
    expect(render("functiongemma", turns, { tools: [FORECAST] })).toBe(expected);
    expect(render("functiongemma", [...turns, user("And?")], { tools: [FORECAST] })).toBe(
      `${expected}And?<end_of_turn>\n<start_of_turn>model\n`,
    );
  });
});

describe("olmo3", () => {
  const NONE = "You do not currently have access to any functions. <functions></functions>";
  const NAMED =
    "You are Olmo, a helpful AI assistant built by Ai2. Your date cutoff is December 2024, and your model weights are " +
    "available at https://huggingface.co/allenai.";
  const turn = (role: string, text: string): string => `<|im_start|>${role}\n${text}<|im_end|>\n`;
  const asked = turn("user", "Hi");
  const ANSWER = "<|im_start|>assistant\n";

  test("has a default system text for each name", () => {
    const first = (renderer: string): string => render(renderer, [user("Hi")]);
    const plain = `You are a helpful function-calling AI assistant. ${NONE}`;
    expect(first("olmo3")).toBe(turn("system", plain) + asked + ANSWER);
    expect(first("olmo3.1")).toBe(turn("system", `${NAMED} ${NONE}`) + asked + ANSWER);
    expect(first("olmo3-think")).toBe(`${turn("system", NAMED)}${asked}${ANSWER}<think>`);
    expect(first("olmo3-32b-think")).toBe(
      `${turn("system", "You are a helpful AI assistant.")}${asked}${ANSWER}<think>`,
    );
  });

  test("renders calls in Python's syntax and results as an environment's turn", () => {
    const turns = [system("Be brief."), user("Hi"), { ...BOTH, content: "So." }, result("4")];
    const tools =
      '[{"type": "function", "function": {"name": "forecast", "description": "Tomorrow\'s weather", ' +
      '"parameters": {"type": "object", "required": ["place"], "properties": {"place": {"type": "string", ' +
      '"description": "A town"}}}}}]';
    const called = 'So.<function_calls>forecast(place="Oslo")\nadd(a=1, b=[2, 3])</function_calls>';
    expect(render("olmo3", turns, { tools: [FORECAST] })).toBe(
      turn("system", `Be brief.<functions>${tools}</functions>`) +
        asked +
        turn("assistant", called) +
        turn("environment", "4") +
        ANSWER,
    );
    expect(render("olmo3-think", turns, { tools: [FORECAST] })).toBe(
      `${turn("system", `Be brief. ${NONE}`)}${asked}${turn("assistant", "So.")}${ANSWER}<think>`,
    );
  });
});
