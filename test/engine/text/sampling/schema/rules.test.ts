/** A schema that cannot be used leaves the rules of a larger grammar as they were. */
import { expect, test } from "bun:test";
import { valueExpression } from "../../../../../src/engine/text/sampling/schema/compile.ts";
import { define, makeRules, use } from "../../../../../src/engine/text/sampling/schema/rules.ts";

test("a schema that fails halfway adds no rules", () => {
  const rules = makeRules();
  use(rules, "ws");
  define(rules, '"before"');
  const state = (): unknown => [[...rules.bodies], [...rules.names], rules.budget.units, rules.chars];
  const before = state();
  const broken = {
    type: "object",
    properties: { a: { type: "list" }, b: { type: "string", maxLength: 5 }, c: { enum: ["x"] } },
  };
  expect(() => valueExpression(rules, broken)).toThrow("$.a.type");
  expect(state()).toEqual(before);
  expect(define(rules, `"before"`)).toBe("r1");
});
