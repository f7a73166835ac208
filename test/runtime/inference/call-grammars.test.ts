/** Grammars of calls are made once for the tools that a client sends again and again. */
import { expect, test } from "bun:test";
import { makeCallGrammars } from "../../../src/runtime/inference/call-grammars.ts";
import type { Tool } from "../../../src/runtime/requests/runtime.ts";

const toolsOf = (count: number, type = "string"): Tool[] =>
  Array.from({ length: count }, (_, i) => ({
    type: "function",
    function: { name: `tool_${i}`, parameters: { type: "object", properties: { [`arg_${i}`]: { type } } } },
  }));

test("the same tools get the grammar that they had", () => {
  const grammars = makeCallGrammars();
  const asked = { format: "hermes", tools: toolsOf(40), isParallel: true } as const;
  const first = grammars(asked)!;
  expect(grammars({ ...asked, tools: toolsOf(40) })).toBe(first);
});

test("other tools, formats and numbers of calls get grammars of their own", () => {
  const grammars = makeCallGrammars();
  const asked = { format: "hermes", tools: toolsOf(2), isParallel: true } as const;
  const first = grammars(asked)!;
  expect(grammars({ ...asked, tools: toolsOf(2, "integer") })).not.toEqual(first);
  expect(grammars({ ...asked, format: "jamba" })!.triggers).not.toEqual(first.triggers);
  expect([first.once, grammars({ ...asked, isParallel: false })!.once]).toEqual([false, true]);
  expect(grammars({ ...asked, tools: toolsOf(0) })).toBeUndefined();
});
