/** The vocabulary in the shape that the grammar library (xgrammar's `TokenizerInfo`) takes. */
import { byteCharacters } from "./byte-alphabet.ts";
import { BYTE, NORMAL, USER_DEFINED } from "./special-tokens.ts";
import type { Tokenizer } from "./tokenizer.ts";
import type { Vocabulary } from "./vocabulary.ts";

export interface GrammarVocabulary {
  /** (pieces) as stored in the file; empty for those that give no text, which a grammar then never allows. */
  readonly tokens: string[];
  /** How a piece spells bytes: GPT-2's alphabet; `▁` and `<0xNN>`; or as they are. */
  readonly kind: "byte_level" | "byte_fallback" | "raw";
  /** Encoding puts a space before a text. */
  readonly prependSpace: boolean;
  readonly stopIds: number[];
}

/** What of a loaded tokenizer it is made from. */
interface GrammarSource extends Pick<Tokenizer, "family" | "endOfGeneration"> {
  readonly vocabulary: Vocabulary | undefined;
}

export function vocabularyForGrammar({ family, vocabulary, endOfGeneration }: GrammarSource): GrammarVocabulary {
  if (vocabulary === undefined) return { tokens: [], kind: "raw", prependSpace: false, stopIds: [] };
  const { pieces, attributes, escapesSpaces, addSpacePrefix } = vocabulary;
  const isByteLevel = family === "bpe" && !escapesSpaces;
  const characters = byteCharacters();
  /** User-defined pieces are plain text also where the others are in GPT-2's alphabet. */
  const spell = (piece: string): string =>
    Array.from(new TextEncoder().encode(piece), (byte) => characters[byte]!).join("");
  const tokens = pieces.map((piece, id) => {
    const attribute = attributes[id]!;
    if (attribute === USER_DEFINED) return isByteLevel ? spell(piece) : piece;
    return attribute === NORMAL || attribute === BYTE ? piece : "";
  });
  return {
    tokens,
    kind: isByteLevel ? "byte_level" : escapesSpaces ? "byte_fallback" : "raw",
    prependSpace: family === "spm" && addSpacePrefix,
    stopIds: [...endOfGeneration],
  };
}
