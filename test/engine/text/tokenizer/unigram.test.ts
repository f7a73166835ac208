/** Unigram against every possible cut, and the character map against one built here. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import type { Metadata, MetadataValue } from "../../../../src/engine/formats/gguf/gguf.ts";
import { readCharsmap } from "../../../../src/engine/text/tokenizer/charsmap.ts";
import { loadTokenizer, type LoadedTokenizer } from "../../../../src/engine/text/tokenizer/load.ts";
import { failure } from "../../formats/gguf/fixture.ts";
import { PLAIN, TYPE, WHOLE } from "./fixtures.ts";

const PIECES: readonly (readonly [string, number])[] = [
  ["▁", -2],
  ["▁a", -3],
  ["a", -4],
  ["b", -4.5],
  ["ab", -5],
  ["▁ab", -6.5],
  ["ba", -5.25],
  ["é", -7],
  ["🙂", -8],
];

function unigramMetadata(extra: Record<string, MetadataValue> = {}): Metadata {
  const special = [
    ["<pad>", 0, TYPE.control],
    ["</s>", 0, TYPE.control],
    ["<unk>", 0, TYPE.unknown],
    ["<mark>", 0, TYPE.userDefined],
  ] as const;
  return new Map<string, MetadataValue>(
    Object.entries({
      "general.architecture": "bert",
      "tokenizer.ggml.model": "t5",
      "tokenizer.ggml.tokens": [...special.map(([piece]) => piece as string), ...PIECES.map(([piece]) => piece)],
      "tokenizer.ggml.token_type": Int32Array.from([
        ...special.map(([, , type]) => type),
        ...PIECES.map(() => TYPE.normal),
      ]),
      "tokenizer.ggml.scores": Float32Array.from([...special.map(() => 0), ...PIECES.map(([, score]) => score)]),
      "tokenizer.ggml.add_space_prefix": true,
      "tokenizer.ggml.remove_extra_whitespaces": true,
      ...extra,
    }),
  );
}

const load = (extra: Record<string, MetadataValue> = {}): LoadedTokenizer =>
  loadTokenizer(unigramMetadata(extra), "m.gguf");
const show = (tokenizer: LoadedTokenizer, text: string, options: typeof PLAIN | typeof WHOLE = PLAIN): string =>
  Array.from(tokenizer.encode(text, options), (id) => tokenizer.vocabulary!.pieces[id]).join("|");

/** The largest sum of scores of any cut of a text into pieces and unknown characters. */
function bestSum(text: string): number {
  if (text === "") return 0;
  const character = String.fromCodePoint(text.codePointAt(0)!);
  const known = PIECES.some(([piece]) => piece === character);
  const sums = PIECES.filter(([piece]) => text.startsWith(piece)).map(
    ([piece, score]) => score + bestSum(text.slice(piece.length)),
  );
  if (!known) sums.push(-8 - 10 + bestSum(text.slice(character.length)));
  return Math.max(...sums);
}

test("the segmentation with the largest sum wins, even with shorter pieces", () => {
  expect(show(load(), "ab  aab ")).toBe("▁ab|▁a|ab");
  expect(show(load(), "aba")).toBe("▁a|ba");
});

test("no other segmentation has a larger sum of scores", () => {
  const tokenizer = load();
  const scores = new Map(PIECES);
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom("a", "b", " ", "é", "🙂", "x"), maxLength: 12 }), (text) => {
      const words = (text.match(/[^ ]+/g) ?? []).map((word) => `▁${word}`).join("");
      const pieces = Array.from(tokenizer.encode(text, PLAIN), (id) => tokenizer.vocabulary!.pieces[id]!);
      const unknowns = Array.from(words).filter((character) => character === "x").length;
      const sum = pieces.reduce((total, piece) => total + (scores.get(piece) ?? 0), 0) - 18 * unknowns;
      expect(sum).toBeCloseTo(bestSum(words), 6);
    }),
  );
});

test("adjacent unknown characters are one token, and EOS is added if the file says so", () => {
  expect(show(load(), "xyz a")).toBe("▁|<unk>|▁a");
  expect(show(load(), "a", WHOLE)).toBe("▁a|</s>");
  expect(show(load(), " <mark>a")).toBe("<mark>|▁a");
});

test("without remove_extra_whitespaces, every space is a piece, and the prefix precedes the first word", () => {
  const tokenizer = load({ "tokenizer.ggml.remove_extra_whitespaces": false });
  expect(show(tokenizer, "  a b")).toBe("▁|▁|▁a|▁|b");
  expect(
    show(load({ "tokenizer.ggml.remove_extra_whitespaces": false, "tokenizer.ggml.add_space_prefix": false }), "ab"),
  ).toBe("ab");
});

test("ids decode to the text", () => {
  const tokenizer = load();
  expect(tokenizer.detokenize(tokenizer.encode("ab a é🙂", PLAIN))).toBe("ab a é🙂");
});

/** A double array of texts and their replacements, as SentencePiece writes it. */
function makeCharsmap(map: Readonly<Record<string, string>>): Uint8Array {
  const utf8 = new TextEncoder();
  const entries: number[] = [];
  const used = new Set<number>([0]);
  const replacements: number[] = [];
  const place = (node: number, keys: { bytes: Uint8Array; value: number }[], depth: number): void => {
    const ends = keys.find(({ bytes }) => bytes.length === depth);
    const children = [...new Set(keys.filter(({ bytes }) => bytes.length > depth).map(({ bytes }) => bytes[depth]!))];
    let base = 1;
    const slots = (): number[] => [...(ends ? [0] : []), ...children].map((byte) => (node ^ base ^ byte) >>> 0);
    while (slots().some((slot) => used.has(slot))) base++;
    for (const slot of slots()) used.add(slot);
    entries[node] = ((entries[node] ?? 0) | (base << 10) | (ends ? 0x100 : 0)) >>> 0;
    if (ends) entries[node ^ base] = (ends.value | 0x8000_0000) >>> 0;
    for (const byte of children) {
      entries[node ^ base ^ byte] = byte;
      place(
        node ^ base ^ byte,
        keys.filter(({ bytes }) => bytes[depth] === byte),
        depth + 1,
      );
    }
  };
  const keys = Object.entries(map).map(([key, replacement]) => {
    const value = replacements.length;
    replacements.push(...utf8.encode(replacement), 0);
    return { bytes: utf8.encode(key), value };
  });
  place(0, keys, 0);
  const words = Uint32Array.from({ length: Math.max(...used) + 256 }, (_, i) => entries[i] ?? 0);
  return Uint8Array.from([
    ...new Uint8Array(Uint32Array.of(words.byteLength).buffer),
    ...new Uint8Array(words.buffer),
    ...replacements,
  ]);
}

const CHARSMAP = "tokenizer.ggml.precompiled_charsmap";
const normalizeWith = (map: Uint8Array) => readCharsmap(new Map<string, MetadataValue>([[CHARSMAP, map]]));

test("the longest prefix in the character map is replaced, and other text stays", () => {
  const normalize = normalizeWith(makeCharsmap({ "\t": " ", Ａ: "A", ﬁ: "fi", "e\u0301": "é", x: "" }));
  expect(normalize("Ａ\tﬁne\u0301xe 🙂")).toBe("A finée 🙂");
  expect(show(load({ [CHARSMAP]: makeCharsmap({ "\t": " ", ａ: "a" }) }), "ａb\ta")).toBe("▁ab|▁a");
});

test("a character map with wrong sizes or missing replacements is a bad file", () => {
  expect(failure(() => normalizeWith(Uint8Array.of(8, 0, 0, 0, 1)))).toMatch(/^bad_file: .*got 8 of 5 bytes/);
  expect(failure(() => normalizeWith(Uint8Array.of(1, 0, 0)))).toMatch(/^bad_file: /);
  const cut = makeCharsmap({ a: "b" }).slice(0, -2);
  expect(failure(() => normalizeWith(cut)("a"))).toMatch(/^bad_file: .*expected a replacement at byte 0, got none/);
  const small = Uint8Array.of(4, 0, 0, 0, 0, 0xff, 0xff, 0x7f);
  expect(failure(() => normalizeWith(small)("a"))).toMatch(/^bad_file: .*expected an entry below 1, got/);
});
