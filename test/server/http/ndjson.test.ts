import { expect, test } from "bun:test";
import { NDJSON } from "../../../src/server/http/ndjson.ts";

test("a value is one line, also for Python's clients, which split lines at more characters than JSON escapes", () => {
  const value = { response: "a\u2028b\u2029c\u0085d\ne" };
  const line = NDJSON.value(value);
  expect(line).toBe('{"response":"a\\u2028b\\u2029c\\u0085d\\ne"}\n');
  expect(JSON.parse(line)).toEqual(value);
});
