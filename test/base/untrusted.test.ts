import { expect, test } from "bun:test";
import { isObject, ownValue, shown } from "../../src/base/untrusted.ts";

const value = { a: [{ b: 1 }, null], "": "empty", text: "abc" };

test.each<[(string | number)[], unknown]>([
  [[], value],
  [["a", 0, "b"], 1],
  [["a", "0", "b"], 1],
  [["a", 1], null],
  [["a", 1, "b"], undefined],
  [["a", "length"], 2], // a property of lists
  [[""], "empty"],
  [["text", 0], undefined], // text is not a list
  [["constructor"], undefined],
  [["__proto__"], undefined],
  [["a", "map"], undefined],
])("the value at the path %j is %p", (keys, wanted) => expect(ownValue(value, keys)).toEqual(wanted));

test.each<[unknown, boolean, string]>([
  [{}, true, "an object"],
  [[1], false, "an array"],
  [null, false, "null"],
  [undefined, false, "nothing"],
  ["a\ud800", false, '"a\ufffd"'],
  ["x".repeat(81), false, `"${"x".repeat(80)}"`],
  [7, false, "7"],
])("%p: is an object: %p, shown as %s", (given, is, text) => {
  expect([isObject(given), shown(given)]).toEqual([is, text]);
});
