/** Truncated JSON: the part that is kept. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { closePrefix, fieldsOfPrefix } from "../../../src/runtime/requests/json-prefix.ts";

test.each<[string, Record<string, unknown> | undefined]>([
  ['{"city":"Par', { city: "Par" }],
  ['  {"a":{"b":[1,"x\\', { a: { b: [1, "x"] } }],
  ['{"a":"\\u00e', { a: "" }],
  ['{"a":"\\\\', { a: "\\" }],
  ['{"a":1,"b', { a: 1 }],
  ['{"a":1,"b":', { a: 1 }],
  ['{"a":12', {}],
  ['{"a":[true,fal', { a: [true] }],
  ['{"a":1} and more', { a: 1 }],
  ["{", {}],
  ["", undefined],
  ["[1", undefined],
  ['"text', undefined],
  ["{city: Paris", undefined],
  ["{'city': 'Par", undefined],
  ["{".repeat(5000), undefined],
])("the prefix %p gives the fields %p", (text, fields) => {
  expect(fieldsOfPrefix(text)).toEqual(fields as never);
});

test("a cut call in Python's syntax is closed", () => {
  expect(closePrefix("[f(a='it \"is', b=2), g(c=[1, 2").text).toBe("[f(a='it \"is', b=2), g(c=[1])]");
  expect(closePrefix('{"a":[1], "b').more).toBe('{"a":[1],"more":0}');
  expect(closePrefix("(a) b")).toEqual({ text: "(a)", length: 3, rest: "", open: [] });
});

/** True if everything in `part` is in `whole`, or the beginning of it. */
function isPart(part: unknown, whole: unknown): boolean {
  if (typeof part === "string") return typeof whole === "string" && whole.startsWith(part);
  if (typeof part !== "object" || part === null) return Object.is(part, whole);
  if (typeof whole !== "object" || whole === null) return false;
  return Object.entries(part).every(([key, value]) => isPart(value, (whole as Record<string, unknown>)[key]));
}

test("the prefix of any JSON object gives a part of that object", () => {
  const string = fc.string({ unit: "binary" });
  const value = fc.jsonValue() as fc.Arbitrary<unknown>;
  const object = fc.dictionary(string, fc.oneof(string, value), { noNullPrototype: true });
  fc.assert(
    fc.property(object, fc.nat(3), fc.integer({ min: 1, max: 9 }), (fields, indent, step) => {
      const text = JSON.stringify(fields, undefined, indent);
      const whole: unknown = JSON.parse(text);
      for (let length = 1; length < text.length; length += step) {
        const part = fieldsOfPrefix(text.slice(0, length));
        if (!part || !isPart(part, whole)) throw new Error(`of ${text.slice(0, length)} came ${JSON.stringify(part)}`);
      }
      expect(fieldsOfPrefix(text)).toEqual(whole as never);
    }),
    { numRuns: 50, seed: 20261127 },
  );
}, 60_000);
