/** Texts to embed between their special tokens, which stay whatever is cut. */
import { expect, test } from "bun:test";
import { encodeInput } from "../../src/runner/embed.ts";

const [BEGIN, END] = [1, 2];
/** A letter is its code; `<` and `>` spell the special tokens. */
const tokenizer = {
  before: BEGIN,
  after: END,
  encode: (text: unknown) =>
    Int32Array.from(String(text), (letter) => (letter === "<" ? BEGIN : letter === ">" ? END : letter.charCodeAt(0))),
};
const idsOf = (text: string, limit = 6): number[] => [
  ...encodeInput(tokenizer, text, { limit, truncate: true, index: 0 }),
];
const letters = (text: string): number[] => Array.from(text, (letter) => letter.charCodeAt(0));

test("a text that brings its special tokens gets no second ones", () => {
  expect(idsOf("abc")).toEqual([BEGIN, ...letters("abc"), END]);
  expect(idsOf("<abc>")).toEqual([BEGIN, ...letters("abc"), END]);
  expect(idsOf("<abcd>")).toEqual([BEGIN, ...letters("abcd"), END]); // as long as may be
});

test("one that is cut ends with its special token all the same", () => {
  expect(idsOf("abcdefgh")).toEqual([BEGIN, ...letters("abcd"), END]);
  expect(idsOf("abcdefgh>")).toEqual([BEGIN, ...letters("abcd"), END]);
  expect(idsOf("<abcdefgh>")).toEqual([BEGIN, ...letters("abcd"), END]);
  expect(() => encodeInput(tokenizer, "abcde>", { limit: 6, truncate: false, index: 0 })).toThrow(
    "exceeds the context",
  );
});
