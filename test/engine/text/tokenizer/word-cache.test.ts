import { expect, test } from "bun:test";
import { makeIdList, pushId } from "../../../../src/engine/text/tokenizer/id-list.ts";
import { makeWordsEncoder } from "../../../../src/engine/text/tokenizer/word-cache.ts";

test("a short word is encoded once, a long one each time, and a full cache is cleared", () => {
  const encoded: string[] = [];
  const encode = makeWordsEncoder((word, out) => {
    encoded.push(word);
    for (let i = 0; i < word.length; i++) pushId(out, word.charCodeAt(i));
  });
  const run = (...words: string[]): string => {
    const out = makeIdList(0);
    encode(words, out);
    return String.fromCharCode(...out.ids.subarray(0, out.length));
  };
  const long = "x".repeat(65);
  expect(run("ab", "c", "ab", long, long, "ab")).toBe(`abcab${long}${long}ab`);
  expect(encoded).toEqual(["ab", "c", long, long]);
  encoded.length = 0;
  for (let i = 0; i < 70_000; i++) run(`w${i}`);
  expect(run("w69999", "ab", "w0", "w0")).toBe("w69999abw0w0");
  expect(encoded.slice(70_000)).toEqual(["ab", "w0"]);
});
