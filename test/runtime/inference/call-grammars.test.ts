/** Grammars of calls are made once for the tools that a client sends again and again. */
import { expect, test } from "bun:test";
import type { LazyGrammar } from "../../../src/engine/text/sampling/lazy-grammar.ts";
import { makeCallGrammars } from "../../../src/runtime/inference/call-grammars.ts";
import { toolFormats, type ToolFormatName } from "../../../src/runtime/parse/index.ts";
import { typedValue } from "../../../src/runtime/parse/typed-values.ts";
import type { Tool } from "../../../src/runtime/requests/runtime.ts";

const toolsOf = (count: number, type = "string"): Tool[] =>
  Array.from({ length: count }, (_, i) => ({
    type: "function",
    function: { name: `tool_${i}`, parameters: { type: "object", properties: { [`arg_${i}`]: { type } } } },
  }));

test("equal tools share one grammar", () => {
  const grammars = makeCallGrammars();
  const asked = { format: "hermes", tools: toolsOf(40), isParallel: true } as const;
  const first = grammars(asked)!;
  expect(grammars({ ...asked, tools: toolsOf(40) })).toBe(first);
});

test("other tools, another format or single calls get another grammar", () => {
  const grammars = makeCallGrammars();
  const asked = { format: "hermes", tools: toolsOf(2), isParallel: true } as const;
  const first = grammars(asked)!;
  expect(grammars({ ...asked, tools: toolsOf(2, "integer") })).not.toEqual(first);
  expect(grammars({ ...asked, format: "jamba" })!.triggers).not.toEqual(first.triggers);
  expect([first.once, grammars({ ...asked, isParallel: false })!.once]).toEqual([false, true]);
  expect(grammars({ ...asked, tools: toolsOf(0) })).toBeUndefined();
});

test("keywords that do not constrain a value do not change the grammar", () => {
  const asked = (format: ToolFormatName, more: object): LazyGrammar | undefined => {
    const properties = {
      a: { type: "object", properties: { b: { type: "string", ...more } } },
      c: { type: ["string", "null"], ...more },
    };
    const tools: Tool[] = [{ type: "function", function: { name: "f", parameters: { type: "object", properties } } }];
    return makeCallGrammars()({ format, tools, isParallel: true });
  };
  for (const format of Object.keys(toolFormats) as ToolFormatName[]) {
    expect(asked(format, { description: "d", readOnly: true, $comment: "c" })).toEqual(asked(format, {}));
  }
});

test("tools whose schemas are too large for a grammar get none", () => {
  const values = Array.from({ length: 60 }, (_, i) => `value ${i} ${"long ".repeat(40)}`);
  const tools = toolsOf(300).map(({ function: { name } }): Tool => {
    const properties = { a: { enum: values.map((value) => name + value) } };
    return { type: "function", function: { name, parameters: { type: "object", properties } } };
  });
  expect(makeCallGrammars()({ format: "hermes", tools, isParallel: true })).toBeUndefined();
});

test("schemas that refer to the same schema many times are read once", () => {
  const many = <T>(value: T): T[] => Array.from({ length: 30 }, () => value);
  const properties = (value: unknown): unknown => Object.fromEntries(many(value).map((each, i) => [`k${i}`, each]));
  const chain = (next: (reference: unknown) => object): object =>
    Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`d${i}`, next({ $ref: `#/$defs/d${i + 1}` })]));
  const end = { d9: { type: "string" } };
  const schemas = [
    { type: "object", allOf: many({ $ref: "#" }), properties: { a: { type: "string" } } },
    { type: "object", properties: properties({ $ref: "#" }) },
    {
      type: "object",
      properties: { a: { $ref: "#/$defs/d0" } },
      $defs: { ...chain((d) => ({ anyOf: many(d) })), ...end },
    },
    {
      type: "object",
      properties: { a: { $ref: "#/$defs/d0" } },
      $defs: { ...chain((d) => ({ type: "object", properties: properties(d) })), ...end },
    },
  ];
  const names = Object.keys(toolFormats) as ToolFormatName[];
  for (const parameters of schemas) {
    const tools: Tool[] = [{ type: "function", function: { name: "f", parameters } }];
    for (const format of names) makeCallGrammars()({ format, tools, isParallel: true });
    expect(typedValue(tools, { name: "f", argument: "a" }, "text")).toBe("text");
  }
}, 20_000);
