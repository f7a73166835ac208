/** Separates thinking from the answer, for any pieces of the text. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { makeAnswerParser } from "../../../src/runtime/parse/answer-parser.ts";
import type { ParsedEvent } from "../../../src/runtime/parse/format.ts";
import { toolFormats } from "../../../src/runtime/parse/index.ts";
import { makeThinkingSplitter } from "../../../src/runtime/parse/thinking.ts";
import { cut, parseWith } from "./cut.ts";

const TAGS = { open: "<think>", close: "</think>" };
const split = (text: string, isOpen = false): ParsedEvent[] => parseWith(makeThinkingSplitter(TAGS, isOpen), [text]);
const text = (content: string): ParsedEvent => ({ kind: "text", text: content });
const thinking = (content: string): ParsedEvent => ({ kind: "thinking", text: content });

describe("thinking", () => {
  test("is the text between the tags, without the white space beside them", () => {
    expect(split("<think>\nHm.\n\nWell.\n</think>\n\nHi.\n")).toEqual([thinking("Hm.\n\nWell."), text("Hi.\n")]);
    expect(split("\n <think>Hm.</think>Hi")).toEqual([thinking("Hm."), text("Hi")]);
  });

  test("begins at once if the prompt ends with the opening tag", () => {
    expect(split("Hm.</think>\nHi", true)).toEqual([thinking("Hm."), text("Hi")]);
    expect(split("Hm. </thi", true)).toEqual([thinking("Hm. </thi")]);
  });

  test("begins only at the start of an answer: later tags are text", () => {
    expect(split("Hi <think>no</think>")).toEqual([text("Hi <think>no</think>")]);
    expect(split("<think>a</think>b<think>c</think>")).toEqual([thinking("a"), text("b<think>c</think>")]);
  });

  test("may be empty, unclosed, or absent", () => {
    expect(split("<think>\n\n</think>\n\nHi")).toEqual([text("Hi")]);
    expect(split("<think>Hm")).toEqual([thinking("Hm")]);
    expect(split("<thi")).toEqual([text("<thi")]);
    expect(split("  ")).toEqual([text("  ")]);
    expect(split("")).toEqual([]);
  });

  test("is emitted as soon as it cannot be a tag", () => {
    const splitter = makeThinkingSplitter(TAGS, false);
    expect(splitter.push("<think>")).toEqual([]);
    expect(splitter.push("\nHm <")).toEqual([thinking("Hm")]);
    expect(splitter.push("b>")).toEqual([thinking(" <b>")]);
    expect(splitter.push("</think")).toEqual([]);
    expect(splitter.push("> Hi")).toEqual([text("Hi")]);
    expect(splitter.push(" ")).toEqual([text(" ")]);
  });

  test("comes before tool calls, and contains none", () => {
    const body = '<tool_call>{"name": "f"}</tool_call>';
    const calls = toolFormats.hermes.makeParser([]);
    const parser = makeAnswerParser({ tags: TAGS, isOpen: false, calls })!;
    expect(parseWith(parser, [`<think>${body}</think>\n${body}`])).toEqual([
      thinking(body),
      { kind: "toolCall", name: "f", arguments: {} },
    ]);
  });

  test("is the same however the answer is cut, and contains no closing tag", () => {
    const piece = fc.constantFrom("<think>", "</think>", "<", "</", "think>", "\n", " ", "Hm", ".");
    const lengths = fc.infiniteStream(fc.integer({ min: 1, max: 6 }));
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 10 }), fc.boolean(), lengths, (pieces, isOpen, sizes) => {
        const whole = pieces.join("");
        const found = parseWith(makeThinkingSplitter(TAGS, isOpen), cut(whole, sizes));
        expect(found).toEqual(split(whole, isOpen));
        for (const event of found) {
          if (event.kind === "thinking") expect(event.text).not.toContain("</think>");
        }
      }),
      { numRuns: 1000, seed: 20261121 },
    );
  });
});
