/** The spoken part of an answer, and its language, without a browser. */
import { expect, test } from "bun:test";
import { languageOf, piecesOf, spokenText } from "../../src/page/app/chat/speech.ts";
import { cleanTitle, parametersOf } from "../../src/page/app/chat/titles.ts";
import { blocksOf } from "../../src/page/app/markdown/blocks.ts";

const spoken = (markdown: string): string => spokenText(blocksOf(markdown));

test("code, rules and HTML are not spoken; lists, tables and quotes are, without their signs", () => {
  expect(
    spoken("# Soup\n\nTake **two** `pots`.\n\n```js\nlet x = 1;\n```\n\n---\n\n- one\n- [two](https://a.example)\n"),
  ).toBe("Soup\nTake two pots.\none\ntwo");
  expect(spoken("> Quoted\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n<b>x</b>")).toBe("Quoted\na, b\n1, 2\nx");
  expect(spoken("- [x] done\n\n      let code;\n")).not.toContain("let code");
});

test("a long text is spoken in pieces that keep every letter", () => {
  const text = `${"A sentence of some words. ".repeat(40)}${"x".repeat(700)} ${"слово ".repeat(100)}`;
  const pieces = piecesOf(text);
  expect(pieces.every(({ length }) => length <= 220)).toBe(true);
  expect(pieces.join("").replace(/\s/g, "")).toBe(text.replace(/\s/g, ""));
  expect(piecesOf(" \n--- …")).toEqual([]);
});

test("the language of a text is that of its script, else the page's", () => {
  expect(languageOf("Hello there", "de-AT")).toBe("de-AT");
  expect(languageOf("Hello there", "ja")).toBe("en");
  expect(languageOf("これは日本語の文です", "en")).toBe("ja");
  expect(languageOf("这是中文", "ja")).toBe("zh");
  expect(languageOf("Привет, мир", "en")).toBe("ru");
  expect(languageOf("Привіт, світе", "uk")).toBe("uk");
  expect(languageOf("한국어 문장", "en")).toBe("ko");
  expect(languageOf("", "en")).toBe("en");
});

test("a title is the first line of the model's answer, without thoughts, quotes and marks", () => {
  expect(cleanTitle('<think>\nhm\n</think>\n\n"Fox Facts."\nMore')).toBe("Fox Facts");
  expect(cleanTitle("**Titel: Füchse**")).toBe("Füchse");
  expect(cleanTitle("Title: „Füchse“")).toBe("Füchse");
  expect(cleanTitle("<think>never ends")).toBe("");
  expect(cleanTitle("word ".repeat(40)).length).toBeLessThanOrEqual(60);
});

test("the number of parameters is read from the API's text", () => {
  expect(parametersOf("8.2B")).toBeCloseTo(8.2e9, 0);
  expect(parametersOf("494.03M")).toBeCloseTo(494.03e6, 0);
  expect(parametersOf("")).toBeUndefined();
  expect(parametersOf(undefined)).toBeUndefined();
});
