/** Tool calls as JSON between tags: the same events for any pieces. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { cut, parseWith } from "./cut.ts";
import type { ParsedEvent } from "../../../src/runtime/parse/format.ts";
import { toolFormats } from "../../../src/runtime/parse/index.ts";

const parse = (...pieces: string[]): ParsedEvent[] => parseWith(toolFormats.hermes.makeParser([]), pieces);

const text = (content: string): ParsedEvent => ({ kind: "text", text: content });
const call = (name: string, args: Record<string, unknown> = {}): ParsedEvent => ({
  kind: "toolCall",
  name,
  arguments: args,
});
const tagged = (body: string): string => `<tool_call>\n${body}\n</tool_call>`;

describe("tool calls between tags", () => {
  test("have their arguments in order, and no tag", () => {
    const events = parse(tagged('{"name": "f", "arguments": {"b": 1, "a": [true, null]}}'));
    expect(JSON.stringify(events)).toBe(JSON.stringify([call("f", { b: 1, a: [true, null] })]));
  });

  test("leave the text around them, without the white space beside the tags", () => {
    const one = tagged('{"name": "f", "arguments": {}}');
    expect(parse(`Let me see.\n\n${one}\n${one}\n\nDone. \n`)).toEqual([
      text("Let me see."),
      call("f"),
      call("f"),
      text("Done. \n"),
    ]);
  });

  test("text without calls is unchanged", () => {
    for (const plain of ["", " \n hi \n", "a < b <tool", "<tool_calls> <tool_call", "1 </tool_call> 2"]) {
      expect(parse(plain)).toEqual(plain === "" ? [] : [text(plain)]);
    }
  });

  test("text that cannot become a tag is emitted at once", () => {
    const parser = toolFormats.hermes.makeParser([]);
    expect(parser.push("Hello")).toEqual([text("Hello")]);
    expect(parser.push(" you <to")).toEqual([text(" you")]);
    expect(parser.push("p>")).toEqual([text(" <top>")]);
    expect(parser.push(" <tool_call>")).toEqual([]);
    expect(parser.push('{"name": "f"}</tool_call')).toEqual([]);
    expect(parser.push(">")).toEqual([call("f")]);
  });

  test("may contain tags and quotes inside JSON strings", () => {
    const args = { html: '</tool_call> <tool_call> \\ " }{', é: "👋" };
    expect(parse(tagged(JSON.stringify({ name: "f", arguments: args })))).toEqual([call("f", args)]);
    const odd = { q: 'one quote: " </tool_call>' };
    expect(parse(tagged(JSON.stringify({ name: "f", arguments: odd })))).toEqual([call("f", odd)]);
  });

  test("may lack the closing tag at the end of the text and before the next call", () => {
    expect(parse('<tool_call>{"name": "a"}<tool_call>{"name": "b"}\n</tool_ca')).toEqual([call("a"), call("b")]);
  });

  test("may have arguments as JSON text or under `parameters`, and a list of calls as body", () => {
    expect(parse(tagged('{"name": "f", "arguments": "{\\"x\\": 1}"}'))).toEqual([call("f", { x: 1 })]);
    expect(parse(tagged('{"name": "f", "parameters": {"x": 1}}'))).toEqual([call("f", { x: 1 })]);
    expect(parse(tagged('[{"name": "f"}, {"name": "g"}]'))).toEqual([call("f"), call("g")]);
  });

  test("an invalid call is emitted as text without tags", () => {
    for (const body of [
      '{"name": "f", "arguments": {"x": }',
      '{"arguments": {}}',
      '{"name": "f", "arguments": 3}',
      "hi",
      "[]",
    ]) {
      expect(parse(`a ${tagged(body)} b`)).toEqual([text(`a \n${body}\n b`)]);
    }
  });

  test("an unclosed string ends with its line, and the text behind it is kept", () => {
    const parser = toolFormats.hermes.makeParser([]);
    expect(parser.push('<tool_call>{"name": "f\n</tool_call>\nstill here')).toEqual([
      text('{"name": "f\n'),
      text("\nstill here"),
    ]);
  });

  test("are found behind a broken call", () => {
    expect(parse('<tool_call>{"name: 1}\n<tool_call>{"name": "f"}</tool_call>')).toEqual([
      text('{"name: 1}\n'),
      call("f"),
    ]);
    expect(parse('<tool_call>"<tool_call>{"name": "f"}')).toEqual([text('"'), call("f")]);
  });

  test("are the same however the text is cut", () => {
    const piece = fc.constantFrom(
      ...'<tool_call> </tool_call> <tool_call </tool < > \n " \\ { } a'.split(" "),
      '{"name": "f", "arguments": {"q": "</tool_call>\\""}}',
      '{"name": "g"}',
      "words and ",
      " ",
    );
    const pieces = fc.array(piece, { maxLength: 12 });
    fc.assert(
      fc.property(pieces, fc.infiniteStream(fc.integer({ min: 1, max: 9 })), (parts, lengths) => {
        const whole = parts.join("");
        expect(parse(...cut(whole, lengths))).toEqual(parse(whole));
        for (const event of toolFormats.hermes.makeParser([]).push(whole)) {
          expect(event.kind === "text" && event.text.includes("<tool_call>")).toBe(false);
        }
      }),
      { numRuns: 2000, seed: 20261121 },
    );
  });
});
