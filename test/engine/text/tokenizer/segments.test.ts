/**
 * Prompts in segments: control tokens are recognised only in trusted segments, and borders between segments do not
 * affect other tokens.
 */
import { describe, expect, test } from "bun:test";
import { resolve } from "node:path";
import fc from "fast-check";
import { mapFile } from "../../../../src/engine/formats/files/map.ts";
import { openGgufFrom } from "../../../../src/engine/formats/gguf/read.ts";
import { loadTokenizer } from "../../../../src/engine/text/tokenizer/load.ts";
import type { TextSegment } from "../../../../src/engine/text/tokenizer/tokenizer.ts";

const path = resolve(import.meta.dir, "../../../../models/hearth/hearth.gguf");
const tokenizer = loadTokenizer(openGgufFrom(mapFile, path).metadata, path);
const control = tokenizer.endOfGeneration.values().next().value!;
const mark = tokenizer.detokenize([control], { special: true });
const special = { addSpecial: true, parseSpecial: true };
const bare = { addSpecial: false, parseSpecial: false };

const words = fc.array(fc.constantFrom("one", " two", "\n", "  ", "é", mark, mark.slice(1), "'s", "12"), {
  maxLength: 12,
});

test("a text without control tokens has the same ids in segments, cut anywhere", () => {
  fc.assert(
    fc.property(words, fc.nat(40), (made, cut) => {
      const text = made.join("").replaceAll(mark, "");
      const segments: TextSegment[] = [
        { text: text.slice(0, cut), control: false },
        { text: text.slice(cut), control: true },
      ];
      expect(tokenizer.encode(segments, special)).toEqual(tokenizer.encode(text, special));
    }),
  );
});

test("a segment with control false has the ids of plain text, and no control token", () => {
  fc.assert(
    fc.property(words, (made) => {
      const text = made.join("");
      const ids = tokenizer.encode([{ text, control: false }], { ...special, addSpecial: false });
      expect(ids).toEqual(tokenizer.encode(text, bare));
      expect(ids.includes(control)).toBe(false);
    }),
  );
});

test("segments with control true keep their control tokens beside such a segment", () => {
  const segments = [mark, mark, mark].map((text, i) => ({ text, control: i !== 1 }));
  const ids = Array.from(tokenizer.encode(segments, { ...special, addSpecial: false }));
  expect([ids[0], ids.at(-1)]).toEqual([control, control]);
  expect(ids.slice(1, -1)).toEqual(Array.from(tokenizer.encode(mark, bare)));
});

describe("findControl", () => {
  test("finds every control token, and a possible beginning of one at the end", () => {
    const found = tokenizer.findControl(`a${mark}b${mark.slice(0, -1)}`);
    const texts = found.map(({ start, end }) => `a${mark}b${mark.slice(0, -1)}`.slice(start, end));
    expect(texts).toContain(mark);
    expect(texts).toContain(mark.slice(0, -1));
    expect(tokenizer.findControl("nothing here")).toEqual([]);
  });
});
