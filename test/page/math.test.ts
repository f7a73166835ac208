/** Formulas in Markdown: their recognition, and their rendering. */
import { expect, test } from "bun:test";
import type { Token } from "marked";
import { blocksOf, NO_BLOCKS, readBlocks } from "../../src/page/app/markdown/blocks.ts";
import { drawMath, type MathPiece } from "../../src/page/app/markdown/temml.ts";

function formulasIn(tokens: readonly Token[]): Token[] {
  return tokens.flatMap((token) => {
    const { type, tokens: inside = [], items = [] } = token as Token & { tokens?: Token[]; items?: Token[] };
    return [...(type === "math" ? [token] : []), ...formulasIn([...inside, ...items])];
  });
}

const formulas = (text: string): string[] =>
  formulasIn(blocksOf(text)).map((token) => (token as { text: string }).text);

test.each([
  ["The area is $\\pi r^2$.", ["\\pi r^2"]],
  ["Both $a_1$ and $b_1 * c_1 * d$: **$x^2$**", ["a_1", "b_1 * c_1 * d", "x^2"]],
  ["\\(x < y\\) and \\[\\sum_{i=1}^n i\\]", ["x < y", "\\sum_{i=1}^n i"]],
  ["Text:\n$$\na = b\n$$\nmore", ["a = b"]],
  [
    "\\[\n\\begin{aligned} a &= b \\\\ c &= d \\end{aligned}\n\\]\n",
    ["\\begin{aligned} a &= b \\\\ c &= d \\end{aligned}"],
  ],
  ["- item $x$\n- \\(y\\)", ["x", "y"]],
  ["$5x + 3$", ["5x + 3"]],
  ["$\\$5$ is a price in a formula", ["\\$5"]],
])("%j has the formulas %j", (text, expected) => expect(formulas(text)).toEqual(expected));

test.each([
  "It costs $5 and $10.",
  "$5-$10, $5/$6 or $5 to CA$10",
  "US$5 million and US$7 million",
  "a $20 bill, and 30$ more",
  "$HOME/$USER and $PATH:$HOME",
  "`$x$` is code",
  "costs $5 `$x` $",
  "```\n$$\nx\n$$\n```",
  "    $$x$$",
  "\\$x\\$",
  "$ x $",
  "$",
  "$$",
  "$x\n\ny$",
])("%j has no formula", (text) => {
  expect(formulas(text).filter((_, i) => (formulasIn(blocksOf(text))[i] as { isWhole?: boolean }).isWhole)).toEqual([]);
});

test("a display formula that streams in is one block from its first characters", () => {
  const text = "So:\n\n$$\na_1 + b_1\n= c\n$$\n\nDone.";
  let blocks = NO_BLOCKS;
  for (let at = 1; at <= text.length; at++) {
    blocks = readBlocks(blocks, text.slice(0, at));
    const shown = [...blocks.done, ...blocks.tail].map(({ type }) => type);
    if (at > text.indexOf("$$") + 1 && at < text.indexOf("Done")) expect([at, shown.at(-1)]).toEqual([at, "math"]);
  }
  expect(formulasIn(blocks.done)).toMatchObject([{ text: "a_1 + b_1\n= c", isWhole: true, isDisplay: true }]);
});

function elements(piece: MathPiece | undefined): string[] {
  if (piece === undefined || typeof piece === "string") return [];
  return [piece.type, ...piece.children.flatMap(elements)];
}

const attributesIn = (piece: MathPiece): string[] =>
  typeof piece === "string"
    ? []
    : [
        ...Object.entries(piece.attributes).flat(),
        ...Object.entries(piece.style).flat(),
        ...piece.children.flatMap(attributesIn),
      ];

test("formulas become elements of MathML", () => {
  expect(elements(drawMath("\\frac{a}{b}", true))).toEqual(["math", "mfrac", "mi", "mi"]);
  for (const tex of [
    "\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}",
    "\\int_0^\\infty e^{-x^2}\\,dx = \\frac{\\sqrt\\pi}{2}",
    "\\begin{cases} x & x > 0 \\\\ -x & \\text{otherwise} \\end{cases}",
    "\\newcommand{\\foo}{\\mathbb{R}} f: \\foo \\to \\foo",
  ]) {
    expect(elements(drawMath(tex, true)).length).toBeGreaterThan(5);
  }
});

test.each([
  "\\href{javascript:alert(1)}{x}",
  "\\includegraphics{https://tracker.invalid/a.png}",
  "\\url{https://tracker.invalid}",
  "\\class{evil}{x}",
  "\\id{main}{y}",
  "\\style{background:url(https://t.invalid)}{z}",
  '\\data{a="b"}{c}',
  "\\color{url(https://t.invalid)} x",
])("a formula with an address, a class or markup is not drawn: %s", (tex) => {
  expect(drawMath(tex, false)).toBeUndefined();
});

test("markup in a formula's text stays text", () => {
  const drawn = drawMath("\\text{<img src=x onerror=alert(1)>}", false)!;
  expect(elements(drawn)).toEqual(["math", "mtext"]);
  expect(attributesIn(drawn)).toEqual([]);
});

test.each([
  ["braces", "{".repeat(1e6)],
  ["pairs of braces", "{}".repeat(5e5)],
  ["nesting", "{".repeat(2400) + "}".repeat(2400)],
  ["fractions", "\\frac{1}{".repeat(400) + "}".repeat(400)],
  ["endless macros", "\\def\\a{\\a\\a}\\a"],
  [
    "macros that double",
    `${Array.from("bcdefghijklm", (each, i) => `\\def\\${each}{\\${"abcdefghijkl"[i]}\\${"abcdefghijkl"[i]}}`).join("")}\\m`,
  ],
  ["macros with long bodies", `\\def\\a{${"x".repeat(4000)}}${"\\a".repeat(200)}`],
  ["a huge space", "\\kern1e9em x"],
])(
  "hostile formulas are refused quickly: %s",
  (_, tex) => {
    expect(drawMath(tex, true)).toBeUndefined();
    expect(blocksOf(`$$${tex}$$`).length).toBeGreaterThan(0);
    expect(blocksOf(`a $${tex}$ b`).length).toBeGreaterThan(0);
  },
  10_000,
);

test("a huge rule loses its exponent", () => {
  expect(attributesIn(drawMath("\\rule{1e9em}{1e9em}", false)!)).toEqual([
    "mathbackground",
    "black",
    "width",
    "9em",
    "height",
    "9em",
  ]);
});
