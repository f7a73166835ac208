/** Null as the value of a JSON schema's keyword. */
import { expect, test } from "bun:test";
import { forcedCallSchema } from "../../../../../src/runtime/inference/forced-call.ts";
import { schemaGrammar } from "../../../../../src/engine/text/sampling/schema/compile.ts";
import { withoutNulls } from "../../../../../src/engine/text/sampling/schema/nulls.ts";

const KEYWORDS =
  "type properties required enum items prefixItems description title additionalProperties patternProperties $defs " +
  "definitions anyOf allOf oneOf not if then else minItems maxItems minLength maxLength minimum maximum pattern format " +
  "uniqueItems contains propertyNames dependentRequired dependentSchemas nullable examples $ref multipleOf";
const NULLS = Object.fromEntries(KEYWORDS.split(" ").map((keyword) => [keyword, null]));

const person = { type: "object", properties: { name: { type: "string" }, tags: { type: "array", items: {} } } };
const withNulls = {
  ...NULLS,
  ...person,
  properties: { name: { ...NULLS, type: "string" }, tags: { ...NULLS, type: "array", items: { ...NULLS } } },
};

test("a keyword that is null is absent, at any depth", () => {
  expect(withoutNulls(withNulls)).toEqual(person);
  expect(schemaGrammar(withNulls)).toEqual(schemaGrammar(person));
  const tool = (parameters: object) => [{ type: "function", function: { name: "f", parameters } }];
  const keys = { open: "", name: "name", arguments: "arguments" };
  const grammarOf = (parameters: object) => schemaGrammar(forcedCallSchema(tool(parameters), keys)).text;
  expect(grammarOf(withNulls)).toBe(grammarOf(person));
});

test("null stays as a value of const, default and enum, and a property that is null accepts any value", () => {
  const schema = { const: null, default: null, enum: [null, 1], properties: { required: null, a: { items: null } } };
  expect(withoutNulls(schema)).toEqual({ ...schema, properties: { required: {}, a: {} } });
});
