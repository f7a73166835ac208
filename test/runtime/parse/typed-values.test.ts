/** Textual arguments, parsed by the tool's schema. */
import { expect, test } from "bun:test";
import type { Tool } from "../../../src/runtime/requests/runtime.ts";
import { typedValue } from "../../../src/runtime/parse/typed-values.ts";

const types: Readonly<Record<string, object>> = {
  tags: { type: "array" },
  options: { type: "object" },
  either: { anyOf: [{ type: "string" }, { type: "array" }] },
  text: { type: "string" },
  free: {},
};
const tools: Tool[] = [
  { type: "function", function: { name: "f", parameters: { type: "object", properties: types } } },
];
const read = (argument: string, text: string): unknown => typedValue(tools, { name: "f", argument }, text);

test("lists and objects in Python's syntax are parsed if the schema has such a type", () => {
  expect(read("tags", "['a', 'b c']")).toEqual(["a", "b c"]);
  expect(read("tags", `["it's", 'say "hi"', None, True, -1.5, ('x', 1)]`)).toEqual([
    "it's",
    'say "hi"',
    null,
    true,
    -1.5,
    ["x", 1],
  ]);
  expect(read("tags", "\n[]\n")).toEqual([]);
  expect(read("options", "{'a': {'b': [1, False]}, 2: 'c'}")).toEqual({ a: { b: [1, false] }, "2": "c" });
  expect(read("either", "['a']")).toEqual(["a"]);
});

test("JSON is tried first, and text that is neither stays text", () => {
  expect(read("tags", '["true", null]')).toEqual(["true", null]);
  for (const text of ["['a'", "['a'] and more", "[a]", "plain", "{'a': 1}", `${"[".repeat(100)}${"]".repeat(100)}x`]) {
    expect(read("tags", text)).toBe(text);
  }
  expect(read("tags", "['".repeat(20_000))).toBeString();
});

test("a text type stays text, and a schema without a type reads JSON only", () => {
  expect(read("text", "['a']")).toBe("['a']");
  expect(read("free", "['a']")).toBe("['a']");
  expect(read("either", "{'a': 1}")).toBe("{'a': 1}");
});

test("`__proto__` and `constructor` are ordinary keys", () => {
  const value = read("options", "{'__proto__': {'x': 1}, 'constructor': 2}") as object;
  expect(Object.keys(value)).toEqual(["__proto__", "constructor"]);
  expect(({} as { x?: number }).x).toBeUndefined();
});

test("arguments declared in allOf, $ref and additionalProperties have their types", () => {
  const parameters = {
    type: "object",
    allOf: [{ properties: { zip: { type: "string" } } }, { $ref: "#/$defs/more" }],
    additionalProperties: { type: "boolean" },
    $defs: { more: { properties: { count: { type: "integer" } } } },
  };
  const f: Tool = { type: "function", function: { name: "f", parameters } };
  const value = (argument: string, text: string): unknown => typedValue([f], { name: "f", argument }, text);
  expect([value("zip", "0123"), value("zip", "12"), value("count", "12")]).toEqual(["0123", "12", 12]);
  expect(value("other", "TRUE")).toBe(true);
});
