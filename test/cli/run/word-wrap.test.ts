import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { plain } from "../../../src/cli/terminal/drawing.ts";
import { WordWrap } from "../../../src/cli/run/word-wrap.ts";

const TOKEN = new RegExp(`${"\x1b"}\\[\\d*[DK]|[\\s\\S]`, "gu");

/** The content of a terminal after some output, with cursor moves and erasing applied. */
function screen(text: string): string[] {
  const lines: string[][] = [[]];
  let column = 0;
  for (const [token] of text.matchAll(TOKEN)) {
    const line = lines.at(-1)!;
    if (token === "\n") {
      lines.push([]);
      column = 0;
    } else if (token.endsWith("D") && token.startsWith("\x1b")) column -= Number(token.slice(2, -1));
    else if (token === "\x1b[K") line.length = column;
    else line[column++] = token;
  }
  return lines.map((line) => line.join("").trimEnd());
}

const wrapped = (pieces: readonly string[], width: number): string[] => {
  const wrap = new WordWrap(width);
  return screen(pieces.map((piece) => wrap.push(plain(piece))).join(""));
};

describe("word wrap", () => {
  test("breaks at blanks", () => {
    expect(wrapped(["the quick brown fox jumps"], 12)).toEqual(["the quick", "brown fox", "jumps"]);
  });

  test("moves a word to the next line if its later pieces do not fit", () => {
    expect(wrapped(["the quick bro", "wn"], 14)).toEqual(["the quick", "brown"]);
  });

  test("cuts a word that is longer than a line", () => {
    expect(wrapped(["x".repeat(25)], 11)).toEqual(["x".repeat(10), "x".repeat(10), "x".repeat(5)]);
  });

  test("counts wide characters twice", () => {
    expect(wrapped(["日本語日本語日本"], 11)).toEqual(["日本語日本", "語日本"]);
  });

  test("leaves text unchanged without a width", () => {
    const text = plain("a b\n".repeat(50));
    expect(new WordWrap(undefined).push(text)).toBe(text);
  });

  test("keeps every letter and the width, whatever the pieces of the text", () => {
    const piece = fc.stringMatching(/^[a-z ]{0,12}\n?$/);
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), fc.integer({ min: 11, max: 40 }), (pieces, width) => {
        const lines = wrapped(pieces, width);
        for (const line of lines) expect(line.length).toBeLessThan(width);
        expect(lines.join("").replaceAll(" ", "")).toBe(pieces.join("").replace(/[\s]/g, ""));
      }),
    );
  });
});
