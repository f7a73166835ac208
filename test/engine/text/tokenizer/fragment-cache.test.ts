import { expect, test } from "bun:test";
import { makeFragmentEncoder } from "../../../../src/engine/text/tokenizer/fragment-cache.ts";
import { makeIdList, pushId } from "../../../../src/engine/text/tokenizer/id-list.ts";

test("a short text is encoded once, a long one each time, and a full cache is cleared", () => {
  const encoded: string[] = [];
  const encode = makeFragmentEncoder((text, out) => {
    encoded.push(text);
    for (const character of text.slice(0, 8)) pushId(out, character.charCodeAt(0));
  });
  const run = (...texts: string[]): string => {
    const out = makeIdList(0);
    for (const text of texts) encode(text, out);
    return String.fromCharCode(...out.ids.subarray(0, out.length));
  };
  const long = "x".repeat(65_537);
  expect(run("one", "two", "one", "", long, long, "one", "")).toBe(`onetwoone${"x".repeat(16)}one`);
  expect(encoded).toEqual(["one", "two", "", long, long]);
  for (let i = 0; i < 18; i++) run(`${i}`.padStart(60_000));
  encoded.length = 0;
  expect(run("   17", "one", "one", "17".padStart(60_000))).toBe("   17oneone        ");
  expect(encoded).toEqual(["   17", "one"]);
});
