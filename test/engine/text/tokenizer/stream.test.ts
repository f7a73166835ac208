import { expect, test } from "bun:test";
import fc from "fast-check";
import { loadTokenizer } from "../../../../src/engine/text/tokenizer/load.ts";
import { makeStreamDetokenizer } from "../../../../src/engine/text/tokenizer/stream.ts";
import { anyCharacter } from "../../../characters.ts";
import { bpeMetadata, PLAIN, spmMetadata, TYPE } from "./fixtures.ts";

const bytes = loadTokenizer(bpeMetadata([], [["<|end|>", TYPE.control]]), "m.gguf");

/** The first 256 ids are bytes. */
const idsOf = (text: Uint8Array): number[] => [...text];

function stream(ids: Iterable<number>): string[] {
  const detokenizer = makeStreamDetokenizer(bytes);
  return [...Array.from(ids, (id) => detokenizer.push(id)), detokenizer.end()];
}

test("a character is emitted with its last byte", () => {
  expect(stream(idsOf(Buffer.from("a🙂é")))).toEqual(["a", "", "", "", "🙂", "", "é", ""]);
});

test("an incomplete character becomes U+FFFD at the end", () => {
  expect(stream(idsOf(Uint8Array.of(0x61, 0xf0, 0x9f)))).toEqual(["a", "", "", "\uFFFD"]);
});

test("a byte order mark is text", () => {
  expect(stream(idsOf(Buffer.from("\uFEFFa"))).join("")).toBe("\uFEFFa");
  expect(bytes.detokenize(idsOf(Buffer.from("\uFEFFa")))).toBe("\uFEFFa");
});

test("a control token gives no text, and does not complete a character", () => {
  const [first, ...rest] = idsOf(Buffer.from("é"));
  expect(stream([first!, 256, ...rest])).toEqual(["", "", "é", ""]);
});

test("streamed text equals the text of all ids at once", () => {
  const same = (ids: number[]): void => {
    expect(stream(ids).join("")).toBe(bytes.detokenize(ids));
  };
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (list) => same(idsOf(list))),
    { seed: 6, numRuns: 500 },
  );
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter }), (text) => same([...bytes.encode(text, PLAIN)])),
    { seed: 7, numRuns: 200 },
  );
});

test("a stream keeps the leading space that detokenizing a whole text drops", () => {
  const spm = loadTokenizer(spmMetadata(["▁", "a"]), "m.gguf");
  const ids = spm.encode("a", PLAIN);
  const detokenizer = makeStreamDetokenizer(spm);
  expect(Array.from(ids, (id) => detokenizer.push(id)).join("")).toBe(" a");
  expect(spm.detokenize(ids)).toBe("a");
});
