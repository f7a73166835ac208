/**
 * Reads `tiktoken.model` of Moonshot's models: a line per token, with its bytes in base64 and its id.
 * GGUF lists merges, which follow from the ids.
 */
import { AppError } from "../../base/index.ts";
import { byteCharacters } from "../../engine/text/index.ts";
import { mergesOf } from "./bpe-ranks.ts";
import type { Tokens, TokensPlace } from "./tokens.ts";
import { completeVocabulary, NORMAL, vocabularyMetadata, type AddedToken } from "./vocabulary.ts";

/** Four times the largest published vocabulary. */
const PIECES_MAX = 2 ** 20;
/** The longest published token has 128. */
const PIECE_BYTES_MAX = 512;
/** Number of ids after the listed tokens that are control tokens, even without a name. */
const RESERVED = 256;

interface Ranks extends TokensPlace {
  /** Tokens with names, from the tokenizer's configuration. */
  readonly added: readonly AddedToken[];
  /** GGUF's name for the rule by which text is split. */
  readonly pre: string;
}

/** Throws `bad_file` for a damaged file. */
export function readTiktoken(text: string, { added, pre, ...place }: Ranks): Tokens {
  const pieces = readPieces(text, place);
  const merges = mergesOf(pieces);
  const named = new Map(added.map((token) => [token.id, { ...token, isSpecial: true }]));
  for (let id = pieces.length; id < Math.min(pieces.length + RESERVED, place.rows); id++) {
    if (!named.has(id)) named.set(id, { id, content: `<|reserved_token_${id}|>`, isSpecial: true });
  }
  const vocabulary = { pieces, types: pieces.map(() => NORMAL), scores: [] };
  const leftOut = completeVocabulary(vocabulary, { added: [...named.values()], ...place });
  const metadata = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": pre,
    ...vocabularyMetadata(vocabulary),
    "tokenizer.ggml.merges": merges,
  };
  return { metadata, pieces, leftOut };
}

/** Tokens by id, in GPT-2's alphabet. */
function readPieces(text: string, { label }: TokensPlace): string[] {
  const characters = byteCharacters();
  const pieces: string[] = [];
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  for (const [i, line] of lines.entries()) {
    const [, base64 = "", rank] = /^([A-Za-z0-9+/]+={0,2}) (\d{1,7})\s*$/.exec(line) ?? [];
    const bytes = Buffer.from(base64, "base64");
    const isToken = bytes.length > 0 && bytes.length <= PIECE_BYTES_MAX && Number(rank) === i && i < PIECES_MAX;
    if (!isToken) {
      const expected = `a token of 1 … ${PIECE_BYTES_MAX} bytes in base64 and the id ${i}`;
      throw new AppError("bad_file", `${label}: 'tiktoken.model': line ${i + 1}: expected ${expected}, got other text`);
    }
    pieces.push(Array.from(bytes, (byte) => characters[byte]!).join(""));
  }
  return pieces;
}
