import { expect, test } from "bun:test";
import { loadTokenizer, vocabularyForGrammar } from "../../../../src/engine/text/tokenizer/load.ts";
import { bpeMetadata, spmMetadata, TYPE } from "./fixtures.ts";

test("a grammar's vocabulary has pieces as stored, user-defined ones in the same alphabet, and empty control tokens", () => {
  const special = [
    ["<|im_end|>", TYPE.control],
    ["é x", TYPE.userDefined],
  ] as const;
  const { tokens, kind, prependSpace, stopIds } = vocabularyForGrammar(
    loadTokenizer(bpeMetadata(["Ġ a"], special), "m"),
  );
  expect(tokens.slice(255)).toEqual(["ÿ", "Ġa", "", "Ã©Ġx"]);
  expect({ kind, prependSpace, stopIds }).toEqual({ kind: "byte_level", prependSpace: false, stopIds: [257] });
});

test("a SentencePiece vocabulary has byte fallback and a prefix space", () => {
  const { tokens, ...rest } = vocabularyForGrammar(loadTokenizer(spmMetadata(["▁a"]), "m"));
  expect([...tokens.slice(0, 4), tokens.at(-1)]).toEqual(["", "", "", "<0x00>", "▁a"]);
  expect(rest).toEqual({ kind: "byte_fallback", prependSpace: true, stopIds: [2] });
});
