import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { chunkText } from "../../../src/gateway/channels/chunk.ts";
import { findFences } from "../../../src/gateway/channels/fences.ts";
import { anyCharacter } from "../../characters.ts";
import { cpuMs } from "../../cpu-time.ts";

const cut = (text: string, limit = 50) => chunkText(text, { limit, unit: "utf16" });

test("a text that fits is one unchanged message", () => {
  expect(cut("  short\n\n\nand\n")).toEqual(["  short\n\n\nand\n"]);
});

test("a blank text becomes no message", () => {
  for (const text of ["", "   ", "\n".repeat(500)]) expect(cut(text)).toEqual([]);
});

test("cuts fall between paragraphs, then lines, then words, then characters", () => {
  expect(cut(`${"a".repeat(30)}\n\n${"b".repeat(10)}\n${"c".repeat(30)}`)).toEqual([
    "a".repeat(30),
    `${"b".repeat(10)}\n${"c".repeat(30)}`,
  ]);
  expect(cut(`${"a".repeat(30)}\n${"b b".repeat(10)}`)).toEqual(["a".repeat(30), "b b".repeat(10)]);
  expect(cut("word ".repeat(12))).toEqual(["word ".repeat(10).trim(), "word word"]);
  expect(cut("x".repeat(120))).toEqual(["x".repeat(50), "x".repeat(50), "x".repeat(20)]);
});

test("a word that would be cut is moved whole to the next message", () => {
  const url = `https://example.com/${"x".repeat(29)}`;
  expect(cut(`see the page there ${url}`)).toEqual(["see the page there", url]);
});

test("a long text is cut in linear time when counted in code points", () => {
  const startedMs = cpuMs();
  expect(chunkText("a ".repeat(200_000), { limit: 50, unit: "codePoint" })).toHaveLength(8000);
  expect(cpuMs() - startedMs).toBeLessThan(2000); // quadratic: 12 s
});

test("the indentation of a line is kept", () => {
  expect(cut(`${"a".repeat(40)}\n\n    indented line of some length`)[1]).toBe("    indented line of some length");
});

test("surrogate pairs, accents, emoji families and flags are not cut", () => {
  const family = "👨‍👩‍👧‍👦"; // 11 units
  for (const sign of ["😀", "e\u0301", family, "🇩🇪"]) {
    const chunks = cut(sign.repeat(40));
    expect(chunks.join("")).toBe(sign.repeat(40));
    expect(chunks.every((chunk) => chunk.length % sign.length === 0)).toBe(true);
  }
});

test("a character longer than a message is cut between code points", () => {
  const zalgo = `a${"\u0301".repeat(119)}`;
  expect(cut(zalgo).join("")).toBe(zalgo);
});

test("a limit in code points counts a surrogate pair as one", () => {
  expect(chunkText("😀".repeat(60), { limit: 50, unit: "codePoint" })).toEqual(["😀".repeat(50), "😀".repeat(10)]);
});

test("lone surrogates become U+FFFD", () => {
  expect(cut(`${"x".repeat(60)}\ud800`).join("")).toBe(`${"x".repeat(60)}\ufffd`);
});

describe("code fences", () => {
  const code = (lines: number) => Array.from({ length: lines }, (_, i) => `line ${i};`).join("\n");

  test("a fence that is cut is closed and opened again with its language", () => {
    const chunks = cut(`Look:\n\`\`\`ts\n${code(8)}\n\`\`\`\nDone.`);
    expect(chunks).toEqual([
      "Look:\n```ts\nline 0;\nline 1;\nline 2;\nline 3;\n```",
      "```ts\nline 4;\nline 5;\nline 6;\nline 7;\n```\nDone.",
    ]);
  });

  test("the opening line of a fence stays with its content", () => {
    const [first, second] = cut(`${"a".repeat(40)}\n~~~js\n${code(4)}\n~~~`);
    expect(first).toBe("a".repeat(40));
    expect(second).toStartWith("~~~js\nline 0;");
  });

  test("an unclosed fence is closed at the end of every message", () => {
    expect(cut(`\`\`\`\n${code(8)}`).every((chunk) => chunk.startsWith("```\n") && chunk.endsWith("\n```"))).toBe(true);
  });

  test("a fence is not opened again for its closing line alone", () => {
    expect(cut(`\`\`\`\n${"x".repeat(42)}\n\`\`\`\nafter it`)).toEqual([
      `\`\`\`\n${"x".repeat(42)}\n\`\`\``,
      "after it",
    ]);
  });

  test("longer fences hold shorter ones", () => {
    for (const chunk of cut(`\`\`\`\`md\n\`\`\`\n${code(9)}\n\`\`\`\n\`\`\`\``)) {
      expect(chunk).toStartWith("````md\n");
      expect(chunk).toEndWith("\n````");
    }
  });
});

/** Texts of words, blanks, line ends, fences, signs of several code points, and anything. */
const pieces = fc.oneof(
  { weight: 4, arbitrary: fc.stringMatching(/^[a-z]{1,12}$/) },
  { weight: 3, arbitrary: fc.constantFrom(" ", "\n", "\n\n", "\t", "\r\n", "  ") },
  { weight: 1, arbitrary: fc.constantFrom("😀", "e\u0301", "👨‍👩‍👧‍👦", "🇩🇪", "漢字仮名", "\u3000") },
  { weight: 1, arbitrary: fc.constantFrom("\n```ts\n", "\n```\n", "\n~~~\n", "\n````\n") },
  { weight: 1, arbitrary: fc.stringMatching(/^[a-z]{60,150}$/) },
);
const texts = fc.array(pieces, { maxLength: 120 }).map((parts) => parts.join(""));
const options = fc.record({
  limit: fc.integer({ min: 50, max: 300 }),
  unit: fc.constantFrom("utf16" as const, "codePoint" as const),
});
const size = (text: string, unit: string) => (unit === "utf16" ? text.length : [...text].length);
const words = (text: string) => text.replace(/\s+/g, "");

test("every message is within the limit, not blank, and well-formed Unicode", () => {
  fc.assert(
    fc.property(
      fc.oneof(texts, fc.string({ unit: anyCharacter, maxLength: 600 })),
      options,
      (text, { limit, unit }) => {
        for (const chunk of chunkText(text, { limit, unit })) {
          expect(size(chunk, unit)).toBeLessThanOrEqual(limit);
          expect(chunk.trim()).not.toBe("");
          expect(chunk.isWellFormed()).toBe(true);
        }
      },
    ),
    { numRuns: 500 },
  );
});

test("without fences, messages are pieces of the text in order with nothing but blanks between", () => {
  const plain = texts.map((text) => text.replace(/[`~]/g, "'"));
  fc.assert(
    fc.property(plain, options, (text, { limit, unit }) => {
      let at = 0;
      for (const chunk of chunkText(text, { limit, unit })) {
        const found = text.indexOf(chunk, at);
        expect(found).toBeGreaterThanOrEqual(0);
        expect(text.slice(at, found).trim()).toBe("");
        at = found + chunk.length;
      }
      expect(text.slice(at).trim()).toBe("");
    }),
    { numRuns: 500 },
  );
});

test("with fences, every word is kept in order, and every message closes its fences", () => {
  fc.assert(
    fc.property(texts, options, (text, { limit, unit }) => {
      const chunks = chunkText(text, { limit, unit });
      const bare = (part: string) => words(part.replace(/^ *(`{3,}|~{3,})(ts)?\r?$/gm, ""));
      expect(chunks.map(bare).join("")).toBe(bare(text));
      const isUnclosed = (part: string) => findFences(part).some((fence) => fence.end === fence.bodyEnd);
      const offenders = chunks.filter(
        (chunk, i) => isUnclosed(chunk) && !(i === chunks.length - 1 && isUnclosed(text)),
      );
      expect(offenders).toEqual([]);
    }),
    { numRuns: 500 },
  );
});
