import { expect, test } from "bun:test";
import { toolFormats } from "../../../src/runtime/parse/index.ts";
import { PARSERS, readingOf } from "../../../src/engine/text/template/named.ts";

test.each(PARSERS)("the parser %s reads in a format that is there, and knows tools where that does", (parser) => {
  const reading = readingOf(parser)!;
  expect(Object.keys(toolFormats)).toContain(reading.format);
  expect(reading.tools).toBe(reading.format !== "plain");
});

test("a name that nobody knows says nothing", () => {
  expect([readingOf(undefined), readingOf("toString"), readingOf("nonsense")]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});
