/** Grammars over single bytes: their answers depend on no tokenizer. */
import { makeGrammarCompiler } from "../src/engine/text/sampling/grammar.ts";
import { byteCharacters } from "../src/engine/text/tokenizer/byte-alphabet.ts";

const characters = byteCharacters();
const END = characters.length;

/** Token i is byte i; the last token ends an answer. */
export const byteCompiler = makeGrammarCompiler({
  tokens: [...characters, "<end>"],
  kind: "byte_level",
  prependSpace: false,
  vocabSize: END + 1,
  stopIds: [END],
});

/** Returns whether a mask of allowed tokens lets the answer end. */
export const mayEnd = (mask: Int32Array): boolean => ((mask[END >> 5] ?? 0) & (1 << (END & 31))) !== 0;
