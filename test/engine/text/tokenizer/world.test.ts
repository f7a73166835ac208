/** RWKV's World vocabulary: llama.cpp's ids for one made here, escapes, and the longest piece everywhere. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { loadTokenizer, vocabularyForGrammar } from "../../../../src/engine/text/tokenizer/load.ts";
import { worldBytes } from "../../../../src/engine/text/tokenizer/world.ts";
import { failure } from "../../formats/gguf/fixture.ts";
import { PLAIN, WHOLE } from "./fixtures.ts";
import { PIECES, TEXTS, worldMetadata } from "./world-fixture.ts";

const tokenizer = loadTokenizer(worldMetadata(), "m.gguf");
/** llama.cpp's. */
const IDS: readonly (readonly number[])[] = [
  [261, 258],
  [261, 257, 259],
  [263, 100, 101, 33, 264, 33, 263, 100],
  [267, 173, 33, 265, 231, 156, 157, 33, 266, 170],
  [269, 170, 33, 268, 196, 170],
  [270, 154, 131, 270, 154, 132],
  [271, 33, 272, 33, 93, 111],
  [273, 33, 121, 10, 14, 11],
];

test.each(TEXTS.map((text, i) => [text, IDS[i]!] as const))(
  "%j has llama.cpp's ids, and decodes to itself",
  (text, ids) => {
    expect([...tokenizer.encode(text, WHOLE)]).toEqual([...ids]);
    expect(tokenizer.detokenize(Int32Array.from(ids))).toBe(text);
  },
);

test("the end of text is recognised with parseSpecial, and is plain text without", () => {
  expect([...tokenizer.encode("<s>", WHOLE)]).toEqual([0]);
  expect([...tokenizer.encode("<s>", PLAIN)]).toEqual([..."<s>"].map((each) => each.charCodeAt(0) + 1));
  expect(tokenizer.endOfGeneration).toEqual(new Set([0, 257]));
  expect(tokenizer.newlineId).toBe(11);
});

test("every token is the longest piece that fits", () => {
  const bytesOf = PIECES.map((piece, id) => (id === 0 ? "" : Buffer.from(worldBytes(piece)).toString("latin1")));
  const some = fc.array(
    fc.constantFrom("a", "b", "abc", "de", "hel", "lo", " ", "w", "日", "曜", "é", "🙂", "\n", "\\"),
  );
  fc.assert(
    fc.property(some, (parts) => {
      const text = parts.join("");
      let rest = Buffer.from(text).toString("latin1");
      const ids = tokenizer.encode(text, PLAIN);
      for (const id of ids) {
        const fitting = bytesOf.filter((bytes) => bytes !== "" && rest.startsWith(bytes));
        expect(bytesOf[id]!.length).toBe(Math.max(...fitting.map(({ length }) => length)));
        rest = rest.slice(bytesOf[id]!.length);
      }
      expect(rest).toBe("");
      expect(tokenizer.detokenize(ids)).toBe(text);
    }),
  );
});

test("escapes are bytes, and other text after a backslash is kept", () => {
  const text = (piece: string): string => Buffer.from(worldBytes(piece)).toString("latin1");
  expect(text("\\t\\n\\r\\\\\\'\\\"")).toBe("\t\n\r\\'\"");
  expect(text("\\xe9\\x41b")).toBe("\xe9Ab");
  expect(text("é")).toBe("\xc3\xa9");
  expect(text("a\\")).toBe("a");
});

test("a byte without a piece is an error, or the unknown token", () => {
  const lacking = PIECES.filter((piece) => piece !== "z");
  const expected = "expected a piece '\\x7a' for a byte, got none";
  expect(failure(() => loadTokenizer(worldMetadata(lacking), "m.gguf"))).toContain(expected);
  const known = loadTokenizer(new Map([...worldMetadata(lacking), ["tokenizer.ggml.unknown_token_id", 2]]), "m.gguf");
  expect([...known.encode("az", PLAIN)]).toEqual([98, 2]);
  const twice = worldMetadata([...PIECES, "\\x61"]);
  expect(failure(() => loadTokenizer(twice, "m.gguf"))).toContain('each piece once, got "a"');
});

test("a grammar's vocabulary has the bytes of pieces", () => {
  const { tokens, kind, stopIds } = vocabularyForGrammar(tokenizer);
  expect([kind, tokens[0], tokens[11], tokens[268], tokens[258]]).toEqual(["byte_level", "", "Ċ", "Ã©t", "Ġworld"]);
  expect(stopIds.toSorted((a, b) => a - b)).toEqual([0, 257]);
});
