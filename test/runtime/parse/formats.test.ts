/** Every tool-call format: the meaning of its answers, however they are cut, and its recognition from templates. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { detectToolFormat, toolFormats, type ToolFormatName } from "../../../src/runtime/parse/index.ts";
import { makePlainParser } from "../../../src/runtime/parse/plain.ts";
import { cut, parseWith } from "./cut.ts";
import { FIXTURES, TOOLS } from "./fixtures.ts";

const names = Object.keys(toolFormats) as ToolFormatName[]; // the keys of a literal

/** Markup of a format without parts that are ordinary words. */
const markupOf = (name: ToolFormatName): readonly string[] => toolFormats[name].markup.filter((tag) => tag.length > 3);

describe.each(names)("%s:", (name) => {
  const parser = () => toolFormats[name].makeParser(TOOLS);

  test("answers give their text and calls", () => {
    for (const { answer, events } of FIXTURES[name]) {
      expect([answer, parseWith(parser(), [answer])]).toEqual([answer, [...events]]);
    }
  });

  test("any cut of an answer gives the same events, and no markup as text", () => {
    const fixture = fc.constantFrom(...FIXTURES[name]);
    const lengths = fc.infiniteStream(fc.integer({ min: 1, max: 7 }));
    fc.assert(
      fc.property(fixture, lengths, ({ answer, events }, sizes) => {
        const found = parseWith(parser(), cut(answer, sizes));
        expect(found).toEqual([...events]);
        for (const event of found) {
          const text = event.kind === "toolCall" || event.kind === "cutCall" ? "" : event.text;
          expect(markupOf(name).filter((tag) => text.includes(tag))).toEqual([]);
        }
      }),
      { numRuns: 200, seed: 20261121 },
    );
  });

  test("an answer cut in two at any place, or into characters, gives the same events", () => {
    for (const { answer, events } of FIXTURES[name]) {
      for (let at = 1; at < answer.length; at++) {
        const pieces = [answer.slice(0, at), answer.slice(at)];
        expect([pieces, parseWith(parser(), pieces)]).toEqual([pieces, [...events]]);
      }
      expect(parseWith(parser(), answer.split(""))).toEqual([...events]);
    }
  });

  test("an answer that ends early gives no call that the whole answer does not have", () => {
    for (const { answer, events } of FIXTURES[name]) {
      const calls = events.filter(({ kind }) => kind === "toolCall");
      for (let at = 1; at < answer.length; at++) {
        const begun = answer.slice(0, at);
        const found = parseWith(parser(), [begun], true).filter(({ kind }) => kind === "toolCall");
        expect([begun, found]).toEqual([begun, calls.slice(0, found.length)]);
      }
    }
  });

  test("a call that ends early has its name and partial arguments, which are no valid JSON until complete", () => {
    for (const { answer, events } of FIXTURES[name]) {
      const calls = events.filter((event) => event.kind === "toolCall");
      for (let at = 1; at < answer.length; at++) {
        const begun = answer.slice(0, at);
        const found = parseWith(parser(), [begun], true);
        const part = found.at(-1);
        if (part?.kind !== "cutCall" || !TOOLS.some((tool) => tool.function.name === part.name)) continue;
        const whole = calls[found.filter(({ kind }) => kind === "toolCall").length];
        if (whole) expect([begun, part.name]).toEqual([begun, whole.name]);
        const isWhole = part.arguments === JSON.stringify(whole?.arguments);
        if (!isWhole) expect(() => JSON.parse(part.arguments)).toThrow();
        expect(begun.replace(/\s/g, "")).toContain(part.text.replace(/\s/g, "").slice(-8));
      }
    }
  });

  test.skipIf(name === "minimaxM3")("a call that ends early in a text argument has the text so far", () => {
    const answer = FIXTURES[name].map((fixture) => fixture.answer).find((each) => each.includes("São"))!;
    const begun = answer.slice(0, answer.indexOf("São") + 2);
    const last = parseWith(parser(), [begun], true).at(-1);
    expect(last).toMatchObject({ kind: "cutCall", name: "weather", arguments: '{"city":"Sã' });
  });

  test("markup in any order gives the same events however it is cut", () => {
    const piece = fc.constantFrom(
      ...toolFormats[name].markup,
      "{",
      "}",
      '"',
      "[",
      "]",
      "now",
      "(",
      "\\",
      "\n",
      " ",
      "é",
    );
    const lengths = fc.infiniteStream(fc.integer({ min: 1, max: 7 }));
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), lengths, (pieces, sizes) => {
        const whole = pieces.join("");
        expect(parseWith(parser(), cut(whole, sizes))).toEqual(parseWith(parser(), [whole]));
      }),
      { numRuns: 300, seed: 20261121 },
    );
  });
});

test("calls in an unknown format are parsed behind the template's own tag", () => {
  const answer = 'Let me see. @call [{"name": "now", "arguments": {}}] bye';
  expect(parseWith(makePlainParser(TOOLS, "@call ["), [answer])).toEqual([
    { kind: "text", text: "Let me see." },
    { kind: "toolCall", name: "now", arguments: {} },
    { kind: "text", text: "bye" },
  ]);
  expect(parseWith(makePlainParser(TOOLS, "@call"), ['@call now with {"a": 1}'])).toEqual([
    { kind: "toolCall", name: "now", arguments: { a: 1 } },
  ]);
});

describe("the format of a template", () => {
  const template = (path: string): string =>
    readFileSync(join(import.meta.dir, "../../engine/text/template/golden", path), "utf8");

  test.each([
    ["jinja/hearth.jinja", "hermes"],
    ["jinja/qwen3.jinja", "hermes"],
    ["jinja/qwen3-xml.jinja", "functionTags"],
    ["jinja/mistral.jinja", "mistral"],
    ["jinja/deepseek.jinja", "deepseek"],
    ["jinja/llama3-tools.jinja", "llama3"],
    ["jinja/chatml.jinja", "plain"],
    ["go/qwen-tools.gotmpl", "hermes"],
    ["go/llama31-tools.gotmpl", "llama3"],
    ["go/mistral-tools.gotmpl", "mistral"],
    ["go/command-r.gotmpl", "commandR"],
    ["go/harmony.gotmpl", "harmony"],
    ["go/functions.gotmpl", "plain"],
  ])("%s is %s", (path, name) => {
    expect(detectToolFormat(template(path))).toBe(name as ToolFormatName);
  });

  test.each([
    ["{{ '<|tool_call|>' + calls }}", "granite"],
    ["{{ '<|tool_call|>' + calls + '<|/tool_call|>' }}", "phi4"],
    ["<TOOLCALL>[{{ calls }}]</TOOLCALL>", "nemotron"],
    ["<tool_calls>{{ calls }}", "jamba"],
    ["<|START_ACTION|>[", "cohere"],
    ["<tool_call>{{ name }}\n<arg_key>", "glm"],
    ["<minimax:tool_call>", "minimax"],
    ["<atem:function_calls>", "glimmer"],
    ["<|tool_call>call:", "gemma4"],
    ["<start_function_call>call:", "functionGemma"],
    ["<|tool_call_start|>[", "lfm2"],
    ["<function_calls>", "olmo3"],
    ["functools[", "firefunction"],
    ["<|tool_calls_section_begin|><|tool_call_begin|>", "kimi"],
    ["{{ '<|open|>' + tag + '<|sep|>' }}{{ '<|close|>' + tag }}", "kimiK3"],
    ["{%- set dsml_token = '｜DSML｜' %}", "dsml"],
    ["]<]minimax[>[<tool_call>", "minimaxM3"],
    ["<|function_call|>{{ call }}<|message_sep|>assistant<|role_sep|>", "gigachat"],
    [">>>all\n", "functionary"],
    ["{%- set tool_calls_token = '<|tools_prefix|>' %}", "apertus"],
    ["{%- set HYTK = ':opensource' %}", "hunyuan"],
    ["<|tool_call:begin|>id<|tool_call:name|>", "solar"],
    ['<function name="f"><param name="p">', "minicpm"],
    ['"List of tools: ["', "lfm2"],
    ["List of tools: <|tool_list_start|>[", "lfm2"],
    ['within <tool_call></tool_call> {"name": 1, "arguments": 2} <tool_calls>[', "jamba"],
    ["Action:\n```json", "commandR"],
  ])("%s is %s", (source, name) => {
    expect(detectToolFormat(source)).toBe(name as ToolFormatName);
  });
});
