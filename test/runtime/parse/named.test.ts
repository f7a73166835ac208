import { expect, test } from "bun:test";
import { toolFormats } from "../../../src/runtime/parse/index.ts";
import { PARSERS, readingOf } from "../../../src/engine/text/template/named.ts";

test.each(PARSERS)("the parser %s has an existing format, and tools unless that is plain", (parser) => {
  const reading = readingOf(parser)!;
  expect(Object.keys(toolFormats)).toContain(reading.format);
  expect(reading.tools).toBe(reading.format !== "plain");
});

test("an unknown parser has no format", () => {
  expect([readingOf(undefined), readingOf("toString"), readingOf("nonsense")]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});
