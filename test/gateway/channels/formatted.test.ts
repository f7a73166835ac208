import { describe, expect, test } from "bun:test";
import { CHAT_MARKS, readMarkdown, withMarks } from "../../../src/gateway/channels/formatted.ts";

const read = (markdown: string, hasLinks = true) => readMarkdown(markdown, { hasLinks });
const marked = (markdown: string): string => withMarks(read(markdown), { of: ({ style }) => CHAT_MARKS[style] });
/** The text, and each styled part. */
const parts = (markdown: string, hasLinks = true): unknown[] => {
  const { text, spans } = read(markdown, hasLinks);
  return [text, ...spans.map(({ style, start, end, url }) => [style, text.slice(start, end), ...(url ? [url] : [])])];
};

describe("the text of an answer has no markers, and its parts have styles", () => {
  test.each<[string, unknown[]]>([
    ["plain 2 * 3 * 4, snake_case_name", ["plain 2 * 3 * 4, snake_case_name"]],
    ["**a** *b* ~~c~~ `d`", ["a b c d", ["bold", "a"], ["italic", "b"], ["strike", "c"], ["code", "d"]]],
    ["## A **b**\n\ntext", ["A b\n\ntext", ["bold", "A b"]]],
    ["**a _b_**", ["a b", ["bold", "a b"], ["italic", "b"]]],
    ["- a\n  - b\n- [x] c\n- [ ] d", ["• a\n  • b\n☑ c\n☐ d"]],
    ["3. a\n\n   b\n4. c", ["3. a\n\n   b\n4. c"]],
    ["> a\n>\n> b", ["> a\n>\n> b"]],
    ["```sh\n**x** <y>\n```\n", ["**x** <y>", ["pre", "**x** <y>"]]],
    ["|a|bb|\n|-|-|\n|**ccc**|d|", ["a   | bb\n----|---\nccc | d", ["pre", "a   | bb\n----|---\nccc | d"]]],
    ["[`the` log](https://a.example/?x=1&y)", ["the log", ["link", "the log", "https://a.example/?x=1&y"]]],
    ["https://a.example/x_y_z <https://b.example>", ["https://a.example/x_y_z https://b.example"]],
    ["[a](javascript:x) [b](/c) [d](https://e.example|f)", ["[a](javascript:x) [b](/c) [d](https://e.example|f)"]],
    ["<b>a</b> &amp; \\*b\\*", ["<b>a</b> &amp; *b*"]],
    ["***", ["———"]],
    [
      "![](https://a.example/b.png)",
      ["https://a.example/b.png", ["link", "https://a.example/b.png", "https://a.example/b.png"]],
    ],
    ["#", ["#"]],
    ["  \n", ["  \n"]],
  ])("%j", (markdown, expected) => {
    expect(parts(markdown)).toEqual(expected);
  });

  test("a label that looks like an address shows the one that it leads to", () => {
    expect(parts("[https://bank.example](https://evil.example)")).toEqual([
      "https://bank.example (https://evil.example)",
    ]);
  });

  test("without links their addresses are in the text", () => {
    expect(parts("see [the log](https://a.example)", false)).toEqual(["see the log (https://a.example)"]);
  });
});

describe("marks of a platform", () => {
  test.each([
    ["**a** *b* ~~c~~ `d`", "*a* _b_ ~c~ `d`"],
    ["```\na\n\nb\n```", "```\na\n\nb\n```"],
    ["**a *b***", "*a _b_*"],
    ["**a\nb**", "*a*\n*b*"],
    ["> **a\n> b**", "> *a*\n> *b*"],
    ["x**a**y と**重要**です", "x\u200b*a*\u200by と\u200b*重要*\u200bです"],
    ["**a**, (*b*)", "*a*, (_b_)"],
  ])("%j", (markdown, expected) => {
    expect(marked(markdown)).toBe(expected);
  });
});

test("hostile Markdown is read in bounded time, and what is too deep stays as it is", () => {
  const nested = Array.from({ length: 80 }, (_, depth) => `${"  ".repeat(depth)}- x`).join("\n");
  const texts = [">", "- ", "*", "_a", "*_", "**_a_ ", "[a](", "`", "|a", "<a "]
    .map((piece) => piece.repeat(Math.ceil(4000 / piece.length)).trimEnd())
    .concat(nested);
  const before = process.cpuUsage();
  for (const text of texts) marked(text);
  const { user } = process.cpuUsage(before);
  expect(user).toBeLessThan(2_000_000); // 0.1 s alone
  expect(marked(">".repeat(4000))).toBe(">".repeat(4000));
  expect(marked("**_a_ ".repeat(600))).toBe("**_a_ ".repeat(600));
});
