import { expect, test } from "bun:test";
import fc from "fast-check";
import { concatBytes } from "../../../src/engine/formats/bytes.ts";
import { utf8Bytes, utf8Length, utf8Text } from "../../../src/engine/text/utf8.ts";
import { anyCharacter } from "../../characters.ts";

test("text has the bytes and the length that Buffer gives, also with lone surrogates", () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter }), fc.integer({ min: 0, max: 20 }), (whole, cut) => {
      const text = whole.slice(cut); // may begin with a lone surrogate
      expect(Buffer.compare(utf8Bytes(text), Buffer.from(text))).toBe(0);
      expect(utf8Length(text)).toBe(Buffer.byteLength(text));
    }),
  );
  for (const text of ["\ud800", "\udc00a", "a\ud83d\ud83d\ude00", "\ud83d", "é€😀"]) {
    expect(utf8Length(text)).toBe(Buffer.byteLength(text));
  }
});

test("invalid UTF-8 becomes U+FFFD, and a byte order mark stays", () => {
  expect(utf8Text(Uint8Array.of(0xef, 0xbb, 0xbf, 97, 0xff))).toBe("\ufeffa\ufffd");
});

test("concatBytes joins bytes in order", () => {
  expect([...concatBytes([Uint8Array.of(1, 2), new Uint8Array(), Uint8Array.of(3)])]).toEqual([1, 2, 3]);
});
