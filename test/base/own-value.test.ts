import { expect, test } from "bun:test";
import { ownValue } from "../../src/base/own-value.ts";

const value = { a: [{ b: 1 }, null], "": "empty", text: "abc" };

test.each<[(string | number)[], unknown]>([
  [[], value],
  [["a", 0, "b"], 1],
  [["a", "0", "b"], 1],
  [["a", 1], null],
  [["a", 1, "b"], undefined],
  [["a", "length"], 2], // a list's own
  [[""], "empty"],
  [["text", 0], undefined], // a text is no list
  [["constructor"], undefined],
  [["__proto__"], undefined],
  [["a", "map"], undefined],
])("%j leads to %p", (keys, wanted) => expect(ownValue(value, keys)).toEqual(wanted));
