/** Growing text is parsed block by block, and only its last block more than once. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { Lexer, type Token } from "marked";
import { blocksOf, NO_BLOCKS, normalLines, readBlocks } from "../../src/page/app/markdown/blocks.ts";
import type { ComponentChildren } from "preact";
import { Block, safeAddress } from "../../src/page/app/markdown/render.tsx";

const PIECES = [
  "# Head\n\n",
  "Some *words* and `code`.\n\n",
  "- one\n- two\n  - inner\n\n",
  "1. first\n2. second\n\n",
  "```ts\nconst a = 1;\n\nconst b = 2;\n```\n\n",
  "> quoted\n> text\n\n",
  "| a | b |\n|---|--:|\n| 1 | 2 |\n\n",
  "---\n\n",
  "a line\nanother line\n\n",
  "<b>markup</b>\n\n",
] as const;

const raws = (tokens: readonly Token[]): string[] =>
  tokens.filter(({ type }) => type !== "space").map(({ raw }) => raw.trim());

test("a text that grows piece by piece has the blocks of the whole text", () => {
  const cases = fc.tuple(
    fc.array(fc.constantFrom(...PIECES), { minLength: 1, maxLength: 12 }),
    fc.integer({ min: 1, max: 40 }),
  );
  fc.assert(
    fc.property(cases, ([pieces, step]) => {
      const text = pieces.join("");
      let blocks = NO_BLOCKS;
      for (let at = step; at < text.length + step; at += step) blocks = readBlocks(blocks, text.slice(0, at));
      const joined = raws([...blocks.done, ...blocks.tail])
        .join("\n")
        .replace(/\n+/g, "\n");
      expect(joined).toBe(raws(blocksOf(text)).join("\n").replace(/\n+/g, "\n"));
      expect(blocks.text.slice(0, blocks.tailAt) + text.slice(blocks.tailAt)).toBe(text);
    }),
    { numRuns: 60 },
  );
});

test("only the last block is parsed again as an answer grows", () => {
  const paragraph = `${"word ".repeat(40)}\n\n`;
  const text = paragraph.repeat(200);
  let [blocks, readChars] = [NO_BLOCKS, 0];
  const lex = (part: string): Token[] => {
    readChars += part.length;
    return new Lexer({ gfm: true }).lex(part);
  };
  const step = 20;
  for (let at = step; at <= text.length; at += step) blocks = readBlocks(blocks, text.slice(0, at), lex);
  expect(blocks.done.length).toBeGreaterThan(190);
  // the whole text each time would be 20 times that
  expect(readChars).toBeLessThan((text.length / step) * 2.5 * paragraph.length);
});

test("a changed text is parsed anew", () => {
  const before = readBlocks(NO_BLOCKS, "one\n\ntwo\n\nthree");
  expect(raws(before.done)).toEqual(["one", "two"]);
  expect(raws(readBlocks(before, "other").tail)).toEqual(["other"]);
  expect(readBlocks(before, before.text)).toBe(before);
});

test.each(["> ".repeat(20_000), "- ".repeat(20_000), "[".repeat(20_000), "*a ".repeat(3000), "x".repeat(300_000)])(
  "deeply nested or long text gives blocks, not an error: %#",
  (text) => {
    expect(blocksOf(normalLines(text)).length).toBeGreaterThan(0);
  },
);

test("character references are decoded in text, but not in code", () => {
  const [token] = blocksOf("`&lt;b&gt;` and `&#38;amp;` make &lt;b&gt; and &#38;");
  const shown = textOf(new Block({ token: token!, isOver: true }).render());
  expect(shown).toBe("&lt;b&gt; and &#38;amp; make <b> and &");
});

test("character references in an address are decoded before its scheme is checked", () => {
  const linkIn = (text: string) => JSON.stringify(new Block({ token: blocksOf(text)[0]!, isOver: true }).render());
  expect(linkIn("[a](https://example.com/?a=1&amp;b=2)")).toContain('"href":"https://example.com/?a=1&b=2"');
  expect(linkIn("[a](javascript&#58;alert(1))")).not.toContain('"href"');
  expect(linkIn("[a](https&#58;//example.com)")).toContain('"href":"https://example.com/"');
});

test("a task list shows a sign and the text in each line, without its brackets", () => {
  const shown = (text: string) => new Block({ token: blocksOf(text)[0]!, isOver: true }).render();
  const tight = shown("- [x] done\n- [ ] to do\n- other");
  expect(textOf(tight)).toBe("☑ done☐ to doother");
  expect(tagsOf(tight)).toEqual(["ul", "li", "li", "li"]);
  const loose = shown("- [x] done\n\n- [ ] to do");
  expect(textOf(loose)).toBe("☑ done☐ to do");
  expect(tagsOf(loose)).toEqual(["ul", "li", "p", "li", "p"]);
});

/** The paragraphs and cells of a text, as tags and text. */
const shownOf = (text: string) =>
  blocksOf(text).flatMap((token) => {
    if (token.type === "space") return [];
    const shown = new Block({ token, isOver: true }).render();
    return [[tagsOf(shown).join(" "), textOf(shown)]];
  });

test("line breaks and a few tags without attributes have their effect; all other markup is source", () => {
  expect(shownOf("one<br>two<BR/>three")).toEqual([["p br br", "onetwothree"]]);
  expect(shownOf("H<sub>2</sub>O, x<sup>**2**</sup>")).toEqual([["p sub sup strong", "H2O, x2"]]);
  expect(shownOf("one\n\n<br>\n\ntwo")).toEqual([
    ["p", "one"],
    ["", ""],
    ["p", "two"],
  ]);
  for (const source of ['a<sub id="x">b</sub>', "a<sub>b", "a</sub>b", "a<sub>b</sup>", "a<blink>b</blink>"]) {
    expect(shownOf(source)).toEqual([["p", source]]);
  }
});

test("a list of sources is shown, with links; a picture links to its address", () => {
  expect(shownOf("Sources:\n\n[1]: https://example.com/a\n[^2]: note")).toEqual([
    ["p", "Sources:"],
    ["p a", "[1]: https://example.com/a"],
    ["p", "[^2]: note"],
  ]);
  const source = "![A cat](https://example.com/cat.png)";
  expect(shownOf(source)).toEqual([["p a", source]]);
  expect(shownOf("![A cat](data:image/png;base64,AA)")[0]![0]).toBe("p");
});

function tagsOf(node: ComponentChildren): unknown[] {
  if (Array.isArray(node)) return node.flatMap(tagsOf);
  return typeof node === "object" && node !== null && "props" in node
    ? [node.type, ...tagsOf(node.props.children)]
    : [];
}

function textOf(node: ComponentChildren): string {
  if (Array.isArray(node)) return node.map(textOf).join("");
  if (typeof node !== "object" || node === null) return String(node ?? "");
  return "props" in node ? textOf(node.props.children) : "";
}

test("only http, https and mailto addresses are links", () => {
  expect(safeAddress("https://example.com/a")).toBe("https://example.com/a");
  expect(safeAddress("mailto:a@example.com")).toBe("mailto:a@example.com");
  for (const address of [
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "data:text/html,x",
    "vbscript:x",
    "/ui",
    "",
    "file:///etc",
  ])
    expect([address, safeAddress(address)]).toEqual([address, undefined]);
});
