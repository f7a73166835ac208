/** Messages between two processes arrive unchanged over a JSON channel. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { fromWire, toWire } from "../../src/base/wire.ts";

const passed = (message: object): unknown => fromWire(JSON.parse(JSON.stringify(toWire(message))));

test("a message of texts, lists and whole numbers is sent without a copy", () => {
  const message = { kind: "generate", id: 1, asked: { messages: [{ role: "user", content: "a\nb \ud83d\ude00" }] } };
  expect(toWire(message)).toBe(message);
});

test("an undefined property does not make a message a clone", () => {
  expect(passed({ kind: "events", end: undefined })).toEqual({ kind: "events" });
  expect("clone" in toWire({ kind: "events", end: undefined })).toBe(false);
});

test.each<[string, unknown]>([
  ["bytes", new Uint8Array([0, 255])],
  ["ids", new Int32Array([-1, 7])],
  ["an infinite number", -Infinity],
  ["no number", NaN],
  ["a negative zero", -0],
  ["a gap in a list", [1, undefined]],
  ["bytes inside of lists", [{ images: [new Uint8Array([1])] }]],
])("%s arrives as sent", (_, value) => {
  const { value: arrived } = passed({ kind: "any", value }) as { value: unknown };
  expect(arrived).toStrictEqual(value);
  expect(Object.is(arrived, -0)).toBe(Object.is(value, -0));
});

test("any object of JSON and typed arrays arrives as sent", () => {
  const leaf = fc.oneof(fc.jsonValue(), fc.float32Array(), fc.uint8Array(), fc.double());
  fc.assert(
    fc.property(fc.dictionary(fc.string(), leaf), (fields) => {
      const message = { kind: "any", fields: { ...fields } };
      expect(passed(message)).toStrictEqual(message);
    }),
  );
});
