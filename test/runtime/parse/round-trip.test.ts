/**
 * Our parser reads the calls that a template prints, because a model sees the same format. And results of tools reach
 * the model.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { detectToolFormat, toolFormats } from "../../../src/runtime/parse/index.ts";
import type { Message, Tool } from "../../../src/runtime/requests/runtime.ts";
import { choosePrompt, renderChat, type PromptTemplate } from "../../../src/engine/text/template/prompt.ts";
import { parseWith } from "./cut.ts";

const now = new Date(2026, 10, 21);
const GOLDEN = join(import.meta.dir, "../../engine/text/template/golden");
const load = (path: string): PromptTemplate => {
  const source = readFileSync(join(GOLDEN, path), "utf8");
  return choosePrompt(path.startsWith("go/") ? { go: source } : { jinja: source });
};

const tools: Tool[] = [
  {
    type: "function",
    function: {
      name: "get_weather",
      description: "Weather",
      parameters: { type: "object", properties: { city: { type: "string" }, days: { type: "integer" } } },
    },
  },
];
const ARGS = { city: 'New "York" <x>', days: 2 };
const question: Message = { role: "user", content: "Weather in New York?" };
const calling: Message = {
  role: "assistant",
  content: "",
  tool_calls: [{ id: "call_ab12cd34", function: { index: 0, name: "get_weather", arguments: ARGS } }],
};
const result: Message = {
  role: "tool",
  content: "RESULT-7",
  tool_name: "get_weather",
  tool_call_id: "call_ab12cd34",
};

/** Borders of the model's turn, for templates that print earlier turns differently from the last. */
const TURNS: Readonly<Record<string, readonly [from: string, to: string]>> = {
  "jinja/deepseek.jinja": ["<｜tool▁calls▁begin｜>", "<｜tool▁outputs▁begin｜>"],
  "go/llama31-tools.gotmpl": ['{"name": "get_weather", "parameters": {"city"', "<|eot_id|>"],
};

const TEMPLATES = [
  "jinja/hearth.jinja",
  "jinja/qwen3.jinja",
  "jinja/qwen3-xml.jinja",
  "jinja/mistral.jinja",
  "jinja/deepseek.jinja",
  "jinja/llama3-tools.jinja",
  "go/qwen-tools.gotmpl",
  "go/llama31-tools.gotmpl",
  "go/mistral-tools.gotmpl",
  "go/command-r.gotmpl",
  "go/harmony.gotmpl",
];

describe.each(TEMPLATES)("%s", (path) => {
  const template = load(path);
  const render = (...messages: Message[]): string => renderChat(template, { messages, tools, now, think: true });

  /** The template's text for the model's turn: from the end of its prompt to the result. */
  function turnOf(): string {
    const whole = render(question, calling, result);
    const marks = TURNS[path];
    if (marks) return whole.slice(whole.indexOf(marks[0]), whole.indexOf(marks[1], whole.indexOf(marks[0])));
    const prompt = render(question);
    let same = 0;
    while (same < prompt.length && prompt[same] === whole[same]) same++;
    return whole.slice(same, whole.indexOf("RESULT-7"));
  }

  test("prints calls that the parser of its format reads", () => {
    const format = toolFormats[detectToolFormat(template.source)];
    const found = parseWith(format.makeParser(tools), [turnOf()]);
    expect(found.filter(({ kind }) => kind === "toolCall")).toEqual([
      { kind: "toolCall", name: "get_weather", arguments: ARGS },
    ]);
  });

  test("prints results behind the call", () => {
    const whole = render(question, calling, result);
    expect(whole.indexOf("RESULT-7")).toBeGreaterThan(whole.indexOf("New "));
  });
});
