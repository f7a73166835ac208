/** RWKV's World vocabulary in its published file. */
import { expect, test } from "bun:test";
import { readWorld } from "../../../src/library/convert/world.ts";

const place = { rows: 12, label: "folder" };
const read = (...lines: readonly string[]) => readWorld(lines.join("\n"), place);

test("tokens in Python's text or bytes notation give the same bytes as in Python", () => {
  const { pieces } = read(
    String.raw`1 '\x00' 1`,
    String.raw`2 b'\xff' 1`,
    String.raw`3 '\xe9\n' 3`,
    `4 'it"s' 4`,
    `5 "it's" 4`,
    String.raw`6 '"\'' 2`,
    String.raw`7 '\\\t' 2`,
    "8 ' 日' 4",
    String.raw`9 '\u2028\U0001f642' 7`,
    "10 '  ' 2\r",
  );
  expect(pieces).toEqual([
    "<s>",
    String.raw`\x00`,
    String.raw`\xff`,
    String.raw`\xc3\xa9\n`,
    `it"s`,
    "it's",
    String.raw`"\'`,
    String.raw`\\\t`,
    String.raw` \xe6\x97\xa5`,
    String.raw`\xe2\x80\xa8\xf0\x9f\x99\x82`,
    "  ",
    "[PAD11]",
  ]);
});

test.each([
  ["another id", "2 'a' 1"],
  ["another count", "1 'a' 2"],
  ["no literal", "1 a 1"],
  ["an unknown escape", String.raw`1 '\q' 1`],
  ["half an escape", String.raw`1 '\x1' 1`],
  ["no bytes", "1 '' 0"],
  ["bytes beyond 255", "1 b'日' 3"],
  ["a long token", `1 '${"a".repeat(513)}' 513`],
  ["nothing", "x"],
])("%s is refused", (_, line) => {
  expect(() => read(line)).toThrow(
    "'rwkv_vocab_v20230424.txt': line 1: expected the id 1, a token as Python spells it",
  );
});

test("more tokens than rows are refused", () => {
  const lines = Array.from({ length: 12 }, (_, i) => `${i + 1} 'a${i}' ${i < 10 ? 2 : 3}`);
  expect(() => read(...lines)).toThrow("expected at most 12 tokens, one for each row of the embedding, got 13");
});
