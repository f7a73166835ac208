/** The vocabulary in the form of the grammar library (xgrammar's `TokenizerInfo`). */
import { byteCharacters, bytesOfCharacters } from "./byte-alphabet.ts";
import { SPACE } from "./code-points.ts";
import { BYTE, NORMAL, USER_DEFINED } from "./special-tokens.ts";
import type { Tokenizer } from "./tokenizer.ts";
import type { Vocabulary } from "./vocabulary.ts";
import { worldBytes } from "./world.ts";

export interface GrammarTokens {
  /** (pieces) as in the file; empty for tokens without text, which a grammar then never allows. */
  readonly tokens: readonly string[];
  /** The pieces' spelling of bytes: GPT-2's alphabet; `▁` and `<0xNN>`; or verbatim. */
  readonly kind: "byte_level" | "byte_fallback" | "raw";
  /** Encoding prepends a space to a text. */
  readonly prependSpace: boolean;
  /** Ids that end an answer; allowed when the value is complete. */
  readonly stopIds: readonly number[];
}

/** The required parts of a loaded tokenizer. */
interface GrammarSource extends Pick<Tokenizer, "family" | "endOfGeneration"> {
  readonly vocabulary: Vocabulary | undefined;
}

/** @param visible control tokens that are shown as text */
export function vocabularyForGrammar(
  { family, vocabulary, endOfGeneration }: GrammarSource,
  visible: ReadonlySet<number> = new Set(),
): GrammarTokens {
  if (vocabulary === undefined) return { tokens: [], kind: "raw", prependSpace: false, stopIds: [] };
  const { pieces, attributes, escapesSpaces, addSpacePrefix } = vocabulary;
  const isWorld = family === "world";
  const isByteLevel = isWorld || (family === "bpe" && !escapesSpaces);
  const characters = byteCharacters();
  /** User-defined pieces are plain text even if the other pieces are in GPT-2's alphabet. */
  const spell = (piece: string): string =>
    Array.from(isWorld ? worldBytes(piece) : new TextEncoder().encode(piece), (byte) => characters[byte]!).join("");
  const tokens = pieces.map((piece, id) => {
    const attribute = attributes[id]!;
    if (attribute === USER_DEFINED || visible.has(id)) return isByteLevel ? spell(piece) : piece;
    if (attribute !== NORMAL && attribute !== BYTE) return "";
    return isWorld ? spell(piece) : piece;
  });
  return {
    tokens,
    kind: isByteLevel ? "byte_level" : escapesSpaces ? "byte_fallback" : "raw",
    prependSpace: family === "spm" && addSpacePrefix,
    stopIds: [...endOfGeneration],
  };
}

/** A function that gives the bytes of a token in this spelling. */
export function makeTokenBytes(kind: GrammarTokens["kind"]): (token: string) => Uint8Array {
  const utf8 = new TextEncoder();
  if (kind === "raw") return (token) => utf8.encode(token);
  if (kind === "byte_level") {
    const byteOf = bytesOfCharacters();
    return (token) => Uint8Array.from(token, (character) => byteOf.get(character) ?? 0);
  }
  return (token) => {
    const [, hex] = /^<0x([0-9A-F]{2})>$/i.exec(token) ?? [];
    return hex === undefined ? utf8.encode(token.replaceAll(SPACE, " ")) : Uint8Array.of(Number.parseInt(hex, 16));
  };
}
