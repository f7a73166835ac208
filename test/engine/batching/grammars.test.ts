/** The grammars of a model. */
import { expect, test } from "bun:test";
import { makeGrammars } from "../../../src/engine/batching/grammars.ts";
import { loadTokenizer } from "../../../src/engine/text/tokenizer/load.ts";
import { bpeMetadata, TYPE } from "../text/tokenizer/fixtures.ts";

const grammarsOf = (vocabSize: number) =>
  makeGrammars({
    tokenizer: loadTokenizer(bpeMetadata(["Ġ a"], [["<|im_end|>", TYPE.control]]), "m"),
    vocabSize,
    open: undefined,
  });

test("a compiler is made once", async () => {
  const grammars = grammarsOf(1000);
  expect(await grammars()).toBe(await grammars());
});

test("a compiler that failed to be made is made again", async () => {
  const grammars = grammarsOf(0);
  const first = grammars();
  await expect(first).rejects.toThrow("in a vocabulary of 0");
  const second = grammars();
  expect(second).not.toBe(first);
  await second.catch(() => {});
});
