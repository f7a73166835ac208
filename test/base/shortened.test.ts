import { expect, test } from "bun:test";
import { shortened } from "../../src/base/index.ts";

test("shortened cuts a text between characters, and leaves a text that fits", () => {
  expect(shortened("abc", 3)).toBe("abc");
  expect(shortened("abcd", 3)).toBe("abc…");
  expect(shortened("a🦊b", 2)).toBe("a…");
  expect(shortened("a🦊b", 3)).toBe("a🦊…");
});
