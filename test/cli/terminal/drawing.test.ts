import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { plain, plainLine, PlainText } from "../../../src/cli/terminal/drawing.ts";

const CONTROLS = /[^\P{Cc}\n\t]|[\u202a-\u202e\u2066-\u2069]/u;

describe("untrusted text", () => {
  test("keeps its letters, newlines and tabs", () => {
    const text = "Grüße, 日本\n\tمرحبا 👩‍👩‍👧";
    expect(plain(text)).toBe(text as never);
  });

  test("loses escape sequences, C1 bytes, direction overrides and lone carriage returns", () => {
    expect(plain("\x1b]0;pwned\x07\x9b31mred \u202eback\rover\u2069") as string).toBe("�]0;pwned��31mred �back�over�");
  });

  test("keeps the line ends of Windows, even across pieces", () => {
    const text = new PlainText();
    expect(["one\r", "\ntwo\r", "three\r\n"].map((piece) => text.push(piece) as string)).toEqual([
      "one",
      "\ntwo",
      "�three\n",
    ]);
  });

  test("is cleaned the same however it is cut into pieces", () => {
    const piece = fc.string({ unit: fc.constantFrom("a", "\r", "\n", "\x1b", "\x9b", "[", "\u202e") });
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const text = new PlainText();
        const came = pieces.map((each) => text.push(each)).join("");
        expect(came).toBe(plain(pieces.join("")) as string);
        expect(came).not.toMatch(CONTROLS);
      }),
    );
  });

  test("can be made one line", () => {
    expect(plainLine(" pulling\nsuccess\x1b[2J ") as string).toBe("pulling success�[2J");
  });
});
