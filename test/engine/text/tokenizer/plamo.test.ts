/** PLaMo 2: llama.cpp's ids for a vocabulary made here, and every possible cut. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import type { Metadata, MetadataValue } from "../../../../src/engine/formats/gguf/gguf.ts";
import { loadTokenizer } from "../../../../src/engine/text/tokenizer/load.ts";
import { failure } from "../../formats/gguf/fixture.ts";
import { TYPE } from "./fixtures.ts";

const SPECIAL = [
  ["<unk>", TYPE.unknown],
  ["<|plamo:bos|>", TYPE.control],
  ["<|plamo:eos|>", TYPE.control],
  ["<|plamo:pad|>", TYPE.control],
  ["<mark>", TYPE.userDefined],
] as const;
const BYTES = Array.from({ length: 256 }, (_, i) => `<0x${i.toString(16).toUpperCase().padStart(2, "0")}>`);
const PIECES: readonly (readonly [string, number])[] = [
  ["Once", -10],
  ["once", -7.75],
  [" upon", -10],
  [" a", -0.75],
  [" time", -9],
  ["time", -3],
  [" ti", -9.5],
  ["me", -8.25],
  ["t", -1.5],
  ["i", -8.25],
  ["m", -5],
  ["e", -7],
  ["on", -1.75],
  ["ce", -3.75],
  ["c", -4.75],
  ["o", -6],
  ["n", -10.75],
  [" ", -8.75],
  ["  ", -3.25],
  ["\n", -9.75],
  ["日本", -7.5],
  ["日", -4.25],
  ["本語", -4.25],
  ["語", -6],
  ["日本語", -8],
  ["の", -8.75],
  ["は", -10.25],
  ["、", -4.5],
  ["。", -7],
  ["é", 0],
  ["caf", -4.75],
  ["café", -0.25],
  ["🙂", -9.5],
  ["▁", -1.5],
  ["▁a", -3.25],
  ["a", -9],
  ["aa", -8.5],
  ["aaa", -7],
  ["aaaa", -4],
  ["ab", -4.25],
  ["abc", -1.75],
  ["bc", -11.75],
  ["b", -11],
  ["hello", -8.25],
  ["hell", -10.25],
  ["ello", -6.75],
  ["lo", -9.75],
  ["l", -3.25],
  ["h", -10.25],
  ["H", -5.5],
  ["wor", -8.5],
  ["ld", -5],
  ["world", -3.75],
  [" world", -6],
  ["<", -8.25],
  ["0x", -6.75],
  ["x41", -3.25],
  [">", -8.25],
  ["Ġ", -1],
];
const FIRST_PIECE = SPECIAL.length + BYTES.length;

function metadataOf(pieces = PIECES, bytes = BYTES): Metadata {
  return new Map<string, MetadataValue>(
    Object.entries({
      "tokenizer.ggml.model": "plamo2",
      "tokenizer.ggml.tokens": [
        ...SPECIAL.map(([piece]) => piece as string),
        ...bytes,
        ...pieces.map(([piece]) => piece),
      ],
      "tokenizer.ggml.token_type": Int32Array.from([
        ...SPECIAL.map(([, type]) => type),
        ...bytes.map(() => 6),
        ...pieces.map(() => TYPE.normal),
      ]),
      "tokenizer.ggml.scores": Float32Array.from([
        ...SPECIAL.map(() => 0),
        ...bytes.map(() => 0),
        ...pieces.map(([, score]) => score),
      ]),
      "tokenizer.ggml.add_bos_token": true,
    }),
  );
}

const tokenizer = loadTokenizer(metadataOf(), "m.gguf");
const plain = { addSpecial: true, parseSpecial: false };

test.each([
  ["Once upon a time", [261, 263, 264, 265]],
  ["日本語の文、です。", [285, 286, 235, 155, 140, 288, 232, 134, 172, 232, 134, 158, 289]],
  ["café 🙂 hello world", [292, 278, 293, 278, 304, 314]],
  ["\ufeffabc", [301]],
  ["▁a▁", [295, 294]],
  ["<0x41>", [315, 53, 317, 318]],
  ["aaaaaaa abcabc", [299, 298, 278, 301, 301]],
  ["😀\u0301", [245, 164, 157, 133, 209, 134]],
  ["a\ufeffb", [296, 244, 192, 196, 303]],
  ["\t\r\n", [14, 18, 280]],
])("%j has llama.cpp's ids, without added tokens, and decodes to itself", (text, ids) => {
  expect([...tokenizer.encode(text, plain)]).toEqual(ids);
  expect(tokenizer.detokenize(Int32Array.from(ids))).toBe(text.replace(/^\ufeff/, ""));
});

test("control tokens are recognised only with parseSpecial, and user-defined ones always", () => {
  const parsed = { addSpecial: false, parseSpecial: true };
  const [mark, bos] = [4, 1];
  expect([...tokenizer.encode("<mark><|plamo:bos|>", parsed)]).toEqual([mark, bos]);
  expect([...tokenizer.encode("<mark>", plain)]).toEqual([mark]);
  expect(tokenizer.encode("<|plamo:bos|>", plain).length).toBeGreaterThan(5);
});

test("no other segmentation has a larger sum of scores", () => {
  const cost = new Map(PIECES.map(([piece, score]) => [piece, -Math.round(score * 1e4)]));
  const best = (text: string): number => {
    if (text === "") return 0;
    const [first] = text;
    let least = 1e7 + best(text.slice(first!.length));
    for (const [piece, own] of cost)
      if (text.startsWith(piece)) least = Math.min(least, own + best(text.slice(piece.length)));
    return least;
  };
  const some = fc.array(fc.constantFrom("a", "b", "c", " ", "t", "i", "me", "日本", "語", "🙂", "x"), { maxLength: 7 });
  fc.assert(
    fc.property(some, (parts) => {
      const text = parts.join("");
      const ids = [...tokenizer.encode(text, plain)];
      const own = ids.map((id) => (id >= FIRST_PIECE ? cost.get(PIECES[id - FIRST_PIECE]![0])! : 0));
      const unknown = [...tokenizer.detokenize(Int32Array.from(ids.filter((id) => id < FIRST_PIECE)))].length;
      expect(own.reduce((sum, each) => sum + each, 0) + unknown * 1e7).toBe(best(text));
      expect(tokenizer.detokenize(Int32Array.from(ids))).toBe(text);
    }),
  );
});

test("a piece with NaN as score is not used, and a byte without a piece is an error", () => {
  const odd = loadTokenizer(
    metadataOf([
      ["ab", NaN],
      ["cd", -3000],
      ["a", -1],
    ]),
    "m.gguf",
  );
  expect([...odd.encode("abcd", plain)]).toEqual([FIRST_PIECE + 2, 5 + 98, 5 + 99, 5 + 100]);
  expect(failure(() => loadTokenizer(metadataOf(PIECES, BYTES.slice(0, 255)), "m.gguf"))).toContain(
    "expected a piece '<0xFF>' for a byte, got none",
  );
});
